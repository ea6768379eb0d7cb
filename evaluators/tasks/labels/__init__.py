"""Labels as options: distributions over them, their calibration, and how evenly labels are right.

From items to metrics::

    item, examples of the split pool
        │  label_prompts: the examples, the frame around them, and the maximum length
        v
    classification_task: one request, whose options are the labels, or for a text that names one
        │  label_reading: base class of tasks that read labels, and reports on them
        │  written_labels: which label a text names, which then has all probability
        v
    label_answers: all records of one task in one context as arrays, including what calibrations learn from
        │  label_tables: the distributions, uncalibrated and after each calibration, fitted or stored
        v
    label_measures: sums over items and the formulas on them (accuracy, RSD, COBias, Gini index, BiasScore, ...)
        │  metric_variants: each measure, uncalibrated and after every calibration
        v
    classification_metrics

*label_baselines* are rules that ignore the input.

Models are measured on the splits *test* and *bias*; *pool* supplies examples, and *content_free* calibrations and
domain-label bias.
"""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
