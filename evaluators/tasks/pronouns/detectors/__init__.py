"""Detectors of the *first_pronoun*, the *final_number* and repeated prompts (*echo*) in generated texts.

There are two of each kind that a published value rests on: a careful one of our own, and that of the paper's code with
all its mistakes, for values that can be compared with the published table.
"""

CAREFUL = "careful-1"
"""Version of our own detectors and of ``refusals.toml``, which ends that of each metric that rests on them."""
PUBLISHED = "gifi-repo-1"
"""The same for the detectors of the paper's code."""
