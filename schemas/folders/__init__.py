"""Folders on disk: those of a dataset and of a run, which files belong to them, and how runs are found."""
