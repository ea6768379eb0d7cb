"""The entry points of the project: the command ``biasboard``, and five functions for Python.

Importing the package loads nothing else: ``score``, ``build``, ``evaluate``, ``load_result`` and ``ranks`` (*api*)
import what they need when they are called. *commands* lists those of the command line; *scoring* is ``biasboard
score``, *gate* its limits for releases, *reproducing* ``biasboard reproduce``, *building* ``biasboard build`` and
``biasboard demo``, *publishing* ``biasboard publish``, and *parts* ``biasboard new`` and ``biasboard check``.
User mistakes raise the exceptions of ``biasboard.ground.errors``.
"""

from __future__ import annotations

from biasboard.api import build, evaluate, load_result, ranks, score

__all__ = ["build", "evaluate", "load_result", "ranks", "score"]
