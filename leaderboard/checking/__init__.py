"""Finding results, checking them and computing their metrics again."""
