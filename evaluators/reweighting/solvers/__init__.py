"""The solvers of reweighting problems, one file each; see :mod:`evaluators.reweighting.problem`."""

from schemas.plugins import search_path

__path__ = search_path(__name__, __path__)
