"""Asks models the items of a dataset and computes metrics from the stored answers: ``python -m evaluators``."""
