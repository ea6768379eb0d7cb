"""Tables of comparable results: columns, rank ranges, and what no table shows."""
