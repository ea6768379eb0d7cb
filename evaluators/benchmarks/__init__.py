"""One file per benchmark, found by name."""
