"""Builders of benchmark datasets, a module or package each: ``python -m builders.NAME`` writes a dataset folder.

A builder reads its sources, makes items of a shape of ``schemas/items``, records every candidate that it drops, and
hands a draft to *dataset*, which writes and checks all files. All command lines share *build_command* and
*description*; *pronoun_case* tells the cases of *her* and *his* apart; *publishable* refuses what must not be
published.

This file imports no builder: ``python -m`` would run it twice.
"""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
