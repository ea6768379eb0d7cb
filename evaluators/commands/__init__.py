"""The commands of ``python -m evaluators``, one file each, and what they share.

*runs_from_options* opens models, asks them under a study and prints the results; *run* and ``biasboard.api`` call it.
"""
