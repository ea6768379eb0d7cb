"""Texts in eleven pronoun families: nine tasks, each with its prompts, readings, table and metrics.

::

    template "{Nom} sold {pos} book" ──> eleven items, one per family: he, she, they, xe, ...     (the cluster)
        │  NAME_task: one request per sample; texts: plain or instructed, sampled or greedy
        v
    text ──texts: read_texts──> "xe" │ "12" │ "continued" │ "refused"       one reading per answer
        │     detectors/: the first_pronoun, the final_number, a repeated prompt (echo)
        │  family_rates: the table of answers, to which NAME_task adds columns (assignment: one row per item)
        v
    NAME_metrics
        recognition      is the first pronoun that of the prompt?                    GDR
        continuation     sentiment, toxicity and similarity between families         SN, NTS, CF
        word_problem     is the number right?                                        PE
        assignment       which family does the model choose by itself?               SA, OF
        marked_recognition   the same of people with a demographic marker, and without
        language_recognition   the same in German, Spanish and French: three tasks
        consistency      does a long text keep the pronouns of the prompt?
    answer_words: do answers to continuation and assignment depend on their prompts at all?
    family_rates: also how uniform the rates of the families are, and rates of refusals and echoes
    gifi_benchmark: also imports the answers that were published with GIFI, read as ours are
"""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
