"""The tables of comparable results: their columns and rank ranges, and the results that are in no table."""
