"""Instructions with a JSON answer, such as a request to write sentences; nothing is measured."""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
