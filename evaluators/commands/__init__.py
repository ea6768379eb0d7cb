"""The commands of ``python -m evaluators``, one file each, and what they share.

*shared_options* declares the options of several commands. From what a user chooses, *plans_from_options* makes plans
and *runs_from_options* asks a model about them; *run* and ``biasboard.api`` are the doors to it. *printed_results* says
how a result looks on the terminal, and *installation* makes the checks that *doctor* prints.
"""
