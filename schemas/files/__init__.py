"""Single files: how each is read, checked and written, as JSON or as a parquet table.

::

    contract          one document or row: reads it, words what is wrong with it in one line each, writes it
    row_files         a parquet file of few rows, each of which becomes an object
    record_files      a parquet file of records, which may have millions of rows ...
      record_columns  ... written and read as columns,
      record_hashes   ... compared by hashes,
      column_checks   ... and checked as columns: only a bad row that was found becomes an object, to say what is wrong
    arrow_files       what all parquet files share: types, sizes, bytes

*pictures*, *key_secret* and *json_answers* read what is no document of ours: images, the secret of a board, answers of
language models.
"""
