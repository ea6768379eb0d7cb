"""Lists of words that add a possible antecedent to a sentence, or that show a gender apart from its pronoun."""

from __future__ import annotations


def word_list(text: str) -> frozenset[str]:
    """Return the words of a text as a set; a long list is easier to read without quotation marks."""
    return frozenset(text.split())


GENDERED_NOUNS = word_list(
    """
    man men woman women boy boys girl girls guy guys lady ladies gentleman gentlemen male males female females father
    fathers mother mothers dad mom son sons daughter daughters brother brothers sister sisters husband wife uncle aunt
    nephew niece grandfather grandmother boyfriend girlfriend king queen prince princess sir madam mr mrs ms waiter
    waitress actor actress businessman businesswoman
    """
)
"""Nouns and titles that name a gender."""

SOURCE_OTHER_PERSONS = word_list(
    "advisor boss child client customer doctor employee judge patient person student visitor"
)
"""Words for one person that the published sentences contain besides the two occupations."""

OTHER_PERSONS = SOURCE_OTHER_PERSONS | word_list(
    """
    adult anybody anyone applicant author baby buyer candidate colleague coworker defendant dentist director everybody
    everyone friend guest homeowner intern kid neighbor nobody owner parent partner passenger patron player reader
    relative resident somebody someone speaker stranger suspect tenant toddler tourist user victim worker
    """
)
"""Words for one person that a sentence of this project must not contain."""

PLURAL_PRONOUNS = word_list("they them their theirs themselves themself")

OTHER_PRONOUNS = PLURAL_PRONOUNS | word_list(
    "i me my mine myself you your yours yourself yourselves we us our ours ourselves"
)
"""Pronouns of the first and second person, and forms of *they*."""
