"""The commands of ``python -m evaluators``, one file each, and what they share.

*choices* are the options of several commands, *chosen_plans* what they choose, *printed_results* how a result looks on
the terminal. *run* is only the door of *asking*, and *doctor* reads the checks of *installation*.
"""
