"""From stored answers to a result: records, metrics, gates and indices. Nothing here calls a model."""
