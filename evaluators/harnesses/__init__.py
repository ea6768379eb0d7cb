"""Other evaluation harnesses, which ask our questions and whose logs are imported, one file or package for each."""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
