"""Runs a model on a config: selects items, asks about them, reads the answers and computes metrics."""
