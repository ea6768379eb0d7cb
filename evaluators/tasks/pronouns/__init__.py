"""Eleven pronoun families in generated texts: recognition, continuation, word problems and assignment.

Texts are read by detectors and, in continuations, scored by other models; metrics compare what one item became under
each family.
"""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
