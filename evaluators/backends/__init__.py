"""Backends, which call models: one file or package each, found by its name."""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
