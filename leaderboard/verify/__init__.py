"""Verifies results that strangers hand in, and computes every number of theirs again.

::

    folder of a stranger
      |  intake         nothing is opened before its names, sizes and links are known
      |  submissions    claims of who submits what; requests, training, rerunning: what must have been asked
      v
    verification        one result: records, readings, and every metric computed again (recomputing, refitting)
      |  remembered     not done again for the same bytes and the same code; isolation: in a process with limits
      v
    loading             all results of a board, or a line for each that is left out;  verdicts: accepted or rejected
"""
