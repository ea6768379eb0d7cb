"""Verifies results that strangers hand in, and computes every number of theirs again.

A number on the board is never that of a ``result.json``: it is computed again from the records beside it.

::

    folder of a stranger
      |  intake               nothing is opened before its names, sizes and links are known; all is done in processes
      |                         with limits
      v
    verification              one result, from its files to an Entry with recomputed metrics (entries)
      |  keys                   are these the items of a dataset that the board knows, or that the code builds?
      |                         is the model what it says, were the items asked as the task asks them, do the readings
      |                         follow from the answers, and was nothing that is measured trained on?
      |  sketches               what is kept of its answers, by which nearly the same ones are found
      |  baselines              what baselines get on its items: their rows, and what the gate compares it with
      v
    verdicts                  all results of a board, or a line for each that is left out; nothing is done again for
                              the same bytes and the same code

What people decide about results: *submissions* chooses the files of a run that may be published, reads who submits
what, holds what maintainers accepted, and finds what a pull request changes; *verdicts* accepts or rejects results, and
compares them with those that are there. *comparisons* asks a model again, scores texts again, and makes results without
their texts again from the runs that have them.

*board_files* says where results, keys and the settings of the site lie, in a repository and elsewhere.
"""
