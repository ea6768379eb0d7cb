"""One file per way of calling a model; found by name."""
