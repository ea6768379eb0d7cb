"""The leaderboard: checks results, recomputes their metrics, ranks comparable results and writes the site.

Importing the package does nothing; run ``python -m leaderboard``.
"""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
