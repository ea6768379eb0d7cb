"""Scorers of generated texts, one file each, found by its name."""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
