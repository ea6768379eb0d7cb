"""One file per item shape, with its JSON Schema beside it; found by name."""

from schemas.plugins import search_path

__path__ = search_path(__name__, __path__)
