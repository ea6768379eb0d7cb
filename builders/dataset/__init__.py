"""What every builder writes: the files of a dataset, its card and Croissant description, its version and licences."""
