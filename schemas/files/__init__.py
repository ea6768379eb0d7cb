"""Single files: how each is read, checked and written, as JSON or as a parquet table.

*contract* reads a document, says in one line each what is wrong with it, and writes it.

A table may have millions of rows. It is written and read as columns (*arrow_files*, *record_files*, *score_files*) and
checked as columns (*column_checks* for what an annotation says, *record_checks* and *score_checks* for rules that join
fields); only the one bad row that is found is turned into an object, to word what is wrong with it.
"""
