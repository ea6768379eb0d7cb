"""The commands of ``python -m evaluators``, one file each, and what they share.

*shared_options* declares the options of several commands. *runs_from_options* opens models and asks them under a study;
*run* and ``biasboard.api`` call it. *printed_results* prints results on the terminal.
"""
