"""Detectors of the *first_pronoun*, the *final_number* and repeated prompts (*echo*) in generated texts.

*language_pronoun* reads the first pronoun of German, Spanish and French texts.

Where published values depend on a detector there are two: a careful one of our own, and that of the paper's code with
all its mistakes, whose values can be compared with the published table.
"""

CAREFUL = "careful-1"
"""Version of our own detectors and ``refusals.toml``, appended to the version of each metric that depends on them."""
PUBLISHED = "gifi-repo-1"
"""Version of the detectors of the paper's code, appended likewise."""
