"""Labels as options: distributions over them, their calibration, and how evenly labels are right.

::

    items + examples --prompts--> requests --> probabilities of labels
      answers      the probabilities of one context as arrays, with the items that a calibration learns from
      table        the answers of all contexts, as they are and after each calibration
      measures     accuracies of classes and what follows from them (RSD, COBias, Gini, ...)
      definitions  the metrics, each measure under its own name and that of every calibration
"""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
