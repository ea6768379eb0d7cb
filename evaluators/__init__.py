"""Asks models about the items of a dataset and computes metrics from the stored answers."""

from schemas.plugins import search_path

__path__ = search_path(__name__, __path__)
