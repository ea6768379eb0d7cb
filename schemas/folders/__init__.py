"""Folders on disk: *dataset_folder* and *run_folder*, which files belong to them, and how runs are found."""
