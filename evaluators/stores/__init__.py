"""Files of answers: the store of a run, the cache that runs share, and files of answers given elsewhere."""
