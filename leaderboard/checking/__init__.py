"""The code that finds results, checks them and recomputes their metrics."""
