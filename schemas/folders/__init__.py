"""Folders on disk: which files belong to a dataset (*dataset_folder*) and to a run (*run_folder*), read and checked."""
