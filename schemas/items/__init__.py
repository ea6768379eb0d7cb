"""The item shapes: one file each, found by its name, with a JSON Schema of the same name beside it."""
