"""The leaderboard: checks results, recomputes their metrics, ranks comparable results and writes the site.

Importing the package does nothing; run ``python -m leaderboard``.
"""
