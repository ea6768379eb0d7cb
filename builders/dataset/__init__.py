"""What all builders need: reading inputs, and writing the files of a dataset with its descriptions.

A builder reads files with *inputs* and hands a draft to *output*, which writes the folder: parquet files, manifest,
rejects, README.md and croissant.json (*card*). *own_csv* reads the files of users. *licences* says which
licences allow sharing copies, and recognises texts that one forbids to share.
"""
