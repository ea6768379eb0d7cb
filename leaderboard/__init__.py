"""The leaderboard: results checked and computed again, what is comparable ranked, the site written.

Importing the package does nothing; run ``python -m leaderboard``.
"""
