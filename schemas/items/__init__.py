"""One file per item shape, with its JSON Schema beside it; found by name."""
