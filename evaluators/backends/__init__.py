"""One file per way of calling a model; found by name."""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
