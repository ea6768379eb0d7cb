"""Builders of benchmark datasets, one module or package each; this file imports nothing so that ``python -m`` works."""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
