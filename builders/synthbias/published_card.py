"""The text of the card of the published SynthBias."""

from __future__ import annotations

from builders.dataset.card import Annotation

LICENCE_FILE = "LICENSE_DATA"
"""Name of the licence file, which is copied into the dataset if it lies beside the input file."""

DATA_STATEMENT = """\
The sentences of SynthBias, byte for byte: English, written by GPT-4o (2024-08-06) and accepted by its authors' crowd
annotation, each with two of the 40 occupations of WinoBias and one form of *he* or *she*. Config `type1` is ambiguous
(`referent` is null; `reference` is the published `occ_1`, the referent that the generator had in mind and no right
answer). Config `type2` is settled: `referent` is `occ_1`. The two items of a `pair_id` differ in the pronoun."""

HOW_BUILT = """\
Every row of the published file became one item; nothing was corrected and nothing dropped. Added: `pair_id` (hash of
type, sentence with the pronoun masked, and the occupations by role), `cluster`, `template_id` (hash of the sentence
without occupations and pronoun), the place of the pronoun, its case as far as the two forms of the pair tell, the
order of mention, `source_row` (line of the file, the header is line 1), and the flags below. The published label
`is_stereotypical` was checked against the occupation lists and agrees in every row."""

ANNOTATION = Annotation(
    protocol=(
        "The authors of SynthBias asked a crowd whether a sentence is coherent and, for each occupation, whether the "
        "pronoun can mean it, and kept the sentences on which at least three quarters agreed. Nothing was annotated "
        "again."
    ),
    annotators="Crowd workers who had passed a test of 20 sentences; their votes are not published.",
    per_item="4 to 10",
)

BIASES = """\
* Two genders alone: nobody is called by any other pronoun.
* A stereotype is membership of the lists of WinoBias, which stand for the labour market of the United States.
* A language model wrote the sentences: occupations of high standing are the referent less often."""

LICENCE_TERMS = f"""\
The data is under [CC BY-NC-ND 4.0](https://creativecommons.org/licenses/by-nc-nd/4.0/) by its authors (Apple): it may
be used and shared unchanged for non-commercial purposes with attribution; adapted copies must not be shared, and this
folder is one. **Do not publish it.** `{LICENCE_FILE}` holds the full text where it lay beside the input."""

KNOWN_LIMITS = """\
* In type 2 the referent is the occupation mentioned last in 70 percent of the items: compare with a positional
  baseline.
* The two sides of a pair were almost surely not annotated independently: at least 48 items, found by hand, have a
  pronoun in the wrong case, all of them masculine. The rules flag each of these: `pronoun_case_error` where two readers
  of the case agree, `pronoun_case_review` where one objects, or none knows; most of the latter are right.
* `pronoun_case` is read from the two forms of a pair; it is wrong where the pronoun itself is.
* Counts are of items. A flag is no verdict; filter by it and report both numbers."""

CITATION = """\
Wang et al. 2025, the paper of UCerF and SynthBias, ICML 2025, arXiv:2505.23996. Occupations: Zhao et al. 2018,
arXiv:1804.06876."""
