"""The tasks, one file each: they turn items into requests, and responses into records."""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
