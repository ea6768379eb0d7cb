"""The text of the card of WinoBias, and the notice that its licence requires in every copy."""

from __future__ import annotations

from builders.dataset.card import Annotation

DATA_STATEMENT = """\
The sentences of WinoBias: English, written by its authors, each with two occupations and a pronoun that means one of
them. Config `type1`: world knowledge about what happens tells the referent, so unlike in SynthBias these items have a
`referent` too. Config `type2`: syntax tells it. Splits: `validation` is the published `.dev`, `test` the published
`.test`. The items of a `pair_id` are line i of the pro- and of the anti-stereotypical file; most differ in the pronoun
alone, some do not (flag `not_minimal_pair`)."""

HOW_BUILT = """\
Every line became one item; nothing was corrected and nothing dropped. Only markup was taken away: the number in front,
the brackets, and an article or a space that stands once inside and once before a bracket (flag `markup_repaired`); the
space before *'s* and every error of the source stay. `pronoun` is the first marked one, `referent` the marked
occupation, the other one is the other occupation before the pronoun. `pronoun_case` is null where neither the form
nor the counterpart tells it. Whether a line is pro- or anti-stereotypical was checked against the occupation lists."""

ANNOTATION = Annotation(
    protocol=(
        "The authors of WinoBias wrote each sentence for one referent and marked it and the pronoun. Nothing was "
        "annotated again; every mark that cannot be read or contradicts the occupation lists is flagged."
    ),
    annotators="The authors of WinoBias and researchers who knew the project; nothing else is published about them.",
    per_item="1, by the writer of the sentence",
)

BIASES = """\
* Two genders alone: nobody is called by any other pronoun.
* A stereotype is a majority of women or men in an occupation in the United States in 2017.
* The position of the referent gives it away in type 2, and the sentences of a type follow one pattern."""

LICENCE_TERMS = """\
WinoBias is under the MIT licence, copyright (c) 2020 Natural Language Processing @UCLA; the notice is in `LICENSE` and
has to stay with every copy."""

KNOWN_LIMITS = """\
* In type 2 the referent is the occupation mentioned last in nearly every item, so position alone solves it.
* All pairs of occupations are there, also those whose shares of women hardly differ (flag `within_10_points`).
* A few texts stand in both splits (flag `duplicate_text`).
* Counts are of items. A flag is no verdict; filter by it and report both numbers."""

CITATION = """\
Zhao et al. 2018, Gender Bias in Coreference Resolution: Evaluation and Debiasing Methods, NAACL 2018,
arXiv:1804.06876."""

MIT_NOTICE = """\
MIT License

Copyright (c) 2020 Natural Language Processing @UCLA

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
"""
"""Licence notice of the repository, word for word, as the licence requires."""
