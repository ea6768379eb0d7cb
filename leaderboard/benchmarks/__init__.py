"""The descriptions of benchmark pages: one file for each benchmark with special pages, found by its name."""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
