"""Runs: which items are asked, asking them, records, metrics, results."""
