"""Verifies results that strangers hand in, and computes every number of theirs again.

A number on the board is never that of a ``result.json``: it is computed again from the records beside it.

::

    folder of a stranger
      |  intake               nothing is opened before its names, sizes and links are known
      v
    verification              one result, from its files to an Entry with recomputed metrics (entries)
      |  keys                   are these the items of a dataset that the board knows?
      |  record_verification    were they asked as the task asks them, and do the readings follow from the answers?
      |  claims, training       is the model what it says, and was nothing that is measured trained on?
      |  recomputing, refitting every metric and every stored correction is computed again
      |  sketches               what is kept of its answers, by which copies are recognised
      |  examples, shown_commands, withholding    what of it a page may show
      v
    verification_memory       not done again for the same bytes and the same code
    isolation                 done in a process with limits, where files come from strangers
      v
    loading                   all results of a board, or a line for each that is left out

What people decide about results: *submissions* prepares them and reads who submits what, *verdicts* accepts or rejects
them, *register* holds what maintainers accepted. *changes* finds what a pull request changes, and *rivals* compares its
results with those that are there. *rerunning* asks a model again, *score_samples* scores some texts again, and
*complete_runs* compares results without their texts with the runs that they were made from.
"""
