"""The descriptions of benchmark pages: one file for each benchmark with special pages, found by its name."""
