"""Verifies results that strangers hand in, and computes every number of theirs again.

A number on the board is never that of a ``result.json``: it is computed again from the records beside it.

::

    folder of a stranger
      |  intake               nothing is opened before its names, sizes and links are known
      v
    verification              one result, from its files to an Entry with recomputed metrics (entries)
      |  keys, embedded         are these the items of a dataset that the board knows, or that the code builds?
      |  record_verification    were they asked as the task asks them, and do the readings follow from the answers?
      |  claims                 is the model what it says, and was nothing that is measured trained on?
      |  recomputing            every metric and every stored correction is computed again
      |  sketches               what is kept of its answers, by which copies are recognised
      |  shown                  what of it a page may show
      v
    verification_memory       not done again for the same bytes and the same code
    isolation                 done in a process with limits, where files come from strangers
      v
    loading                   all results of a board, or a line for each that is left out

What people decide about results: *submissions* prepares them, reads who submits what, and holds what maintainers
accepted; *verdicts* accepts or rejects them. *changes* finds what a pull request changes, and *rivals* compares its
results with those that are there. *rerunning* asks a model again, and *complete_runs* compares results without their
texts with the runs that they were made from.
"""
