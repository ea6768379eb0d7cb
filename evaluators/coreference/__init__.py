"""What the tasks and metrics of coreference share: records as arrays, and how answers are read."""
