"""The item shapes, which define the rows of datasets: one file each, found by its name.

The JSON Schemas next to them are generated.
"""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
