"""The entry points of the project: the command ``biasboard``, and four functions for Python.

Importing the package loads nothing else: ``build``, ``evaluate``, ``load_result`` and ``ranks`` (*api*) import what
they need when they are called; *building* is ``biasboard build`` and *demo* ``biasboard demo``. User mistakes raise the
exceptions of ``biasboard.ground.errors``.
"""

from __future__ import annotations

from biasboard.api import build, evaluate, load_result, ranks

__all__ = ["build", "evaluate", "load_result", "ranks"]
