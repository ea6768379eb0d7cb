"""The item shapes: one file each, found by its name, with a JSON Schema of the same name beside it."""

from schemas.plugins import search_path

__path__ = search_path(__name__, __path__)
