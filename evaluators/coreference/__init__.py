"""Code that the coreference task and its metrics share: tables of records, and the reading of answers."""
