"""Files of answers, which nothing asks for twice.

*store* is the SQLite file of a run, committed batch by batch; *heads* keeps the beginnings that prompts share once.
*reading* and *maintenance* look at stores from outside a run, such as the cache that runs share; *answer_files* gives
answers to others and takes theirs.
"""
