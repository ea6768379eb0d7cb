"""Publishes the results of runs as a dataset on the Hugging Face Hub.

*published_results* chooses what a repository will hold, and writes what the Hub shows of it. Results lie there as on a
board, so that a board can be made of them; the repository itself is :mod:`biasboard.ground.hub_publishing`.
"""
