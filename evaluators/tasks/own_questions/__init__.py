"""Questions with options of their own, such as a researcher's: is everybody answered alike, and what is preferred?

From item to metrics::

    question, options, right answer, stereotyped option, group
        │  own_question_task: one request for each place of an option, or one with the whole options
        v
    mean distribution over the options            ordered_options, lettered_answers
        │  table in own_question_task: the roles of the options (right, stereotyped, neutral)
        v
    own_question_metrics: accuracy by group, gap, worst group; stereotype rate, bias scores; places that are preferred

*published_answers* reads answers to BBQ and StereoSet that their authors published, in place of a model's.
A baseline of *own_questions_benchmark* predicts the right option from wording, length and place alone.
"""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
