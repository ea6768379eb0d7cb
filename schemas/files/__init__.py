"""Reads, checks and writes single files: JSON documents and parquet tables.

::

    contract          one document or row: reads it, reports each problem on one line, writes it
    row_files         a parquet file of few rows, each of which becomes an object
    record_files      a parquet file of records, which may have millions of rows ...
      record_columns  ... written, read, compared by hashes and checked as columns: only a bad row becomes an object, to
                      word what is wrong
    arrow_files       what all parquet files share: types, limits of size, reproducible bytes

*user_tables* reads the tables of users.
*pictures* and *json_answers* read what is not a document: images and answers of language models.
"""
