"""The commands of ``python -m evaluators``, one file each, and what they share.

*runs_from_options* opens models and asks them under a study; *run* and ``biasboard.api`` call it. *printed_results*
prints results on the terminal.
"""
