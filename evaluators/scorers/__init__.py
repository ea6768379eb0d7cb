"""Scorers of generated texts, one file per way of scoring."""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
