"""Files of answers, which nothing asks for twice.

*store* is the SQLite file of a run, committed batch by batch, and of a cache that runs share. *read_only* and
*maintenance* look at stores from outside a run; *answer_files* writes their answers for other programs.
"""
