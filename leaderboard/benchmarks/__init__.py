"""One file per benchmark whose pages have something of their own; found by name."""
