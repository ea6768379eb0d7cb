"""One file per item shape: item to requests, responses to record; found by name."""

from schemas.plugins import search_path

__path__ = search_path(__name__, __path__)
