"""The commands of ``python -m evaluators``, one file each, and what they share.

*shared_options* declares the options of several commands. *plans_from_options* makes plans from a user's options, and
*runs_from_options* asks a model about them; *run* and ``biasboard.api`` call it. *printed_results* prints results on
the terminal, and *installation* makes the checks that *doctor* prints.
"""
