"""The families of tasks. Each folder holds a whole family: what is asked, how answers are read, and what is measured.

By the names of its files::

    NAME_task.py         turns items into requests, and responses into readings (evaluators/task.py)
    NAME_metrics.py      defines metrics of the tables of its records (evaluators/metric.py)
    NAME_benchmark.py    baselines, indices, gates and imports of a benchmark (evaluators/benchmark.py)
    all others           shared parts: prompts, readings, detectors, tables

*answer_lines* finds refusals, by ``refusals.toml``, and removes markup of answers to questions with options. Of these,
*lettered_answers* reads which option is named, and *ordered_options* the distribution over options, averaged over their
orders. *written_answers* reads answers that are texts: one reading each, of which some are missing.

A family may use another only where it asks the same thing in another way, as images do with labels.
"""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
