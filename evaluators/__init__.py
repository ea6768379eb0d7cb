"""Asks models about the items of a dataset and computes metrics from the stored answers."""
