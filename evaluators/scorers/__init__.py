"""Scorers of generated texts, one file per way of scoring."""
