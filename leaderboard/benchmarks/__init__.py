"""One file per benchmark whose pages have something of their own; found by name."""

from schemas.plugins import search_path

__path__ = search_path(__name__, __path__)
