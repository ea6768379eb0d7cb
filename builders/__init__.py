"""Builders of benchmark datasets, one module or package each; this file imports nothing so that ``python -m`` works."""
