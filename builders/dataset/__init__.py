"""What all builders need: reading inputs, and writing the files of a dataset with its descriptions."""
