"""The text of the card of the embedded dataset."""

from __future__ import annotations

from builders.card import Annotation
from builders.synthbias.frames_open import OPEN_FRAMES
from builders.synthbias.frames_settled import SETTLED_FRAMES

DATA_STATEMENT = """\
American English sentences about everyday situations, each with two of the 40 occupations of WinoBias and one form of
*he* or *she* after both. Config `type1`: both readings are natural, so there is no right answer (`referent` is null,
and `reference` is the occupation mentioned first). Config `type2`: syntax or plain meaning settles the referent. The
two items of a `pair_id` differ in exactly one token, the pronoun. `cluster` is the occupation pair, `template_id` the
frame.

**No human has validated these sentences.** What is ambiguous and what is not was decided when the frames were written,
and asked of no reader since; rules in code check form, not meaning."""

ANNOTATION = Annotation(
    protocol=(
        "Nobody annotated the items. Whether a sentence is ambiguous, and whom its pronoun means, belongs to the frame "
        "and was decided by those who wrote it; form is checked by rule."
    ),
    annotators="None: the authors of the frames are the only people who have judged them.",
    per_item="0",
)

BIASES = """\
* Two genders alone: nobody is called by any other pronoun.
* A stereotype is membership of the lists of WinoBias, which stand for the labour market of the United States.
* The frames are scenes of ordinary working life as their few authors imagine it, in American English."""

LICENCE_TERMS = "The sentences and their annotation are licensed under Apache-2.0, like the code that writes them."

KNOWN_LIMITS = """\
* No human has validated the sentences; both readings of type 1 are possible, but not always equally likely: a
  reflexive (*a story about herself*) leans to the subject.
* 80 frames mean little variety. Intervals are clustered by occupation pair and take the frames as given: they say
  nothing about other frames, and by frame they can be twice as wide. Look at single frames (`template_id`) as well.
* Two genders of pronouns, one language, the labour market of one country and year.
* A stereotype is nothing but membership of the WinoBias lists, which split the occupations at 50 percent women."""

CITATION = """\
Cite this project with the dataset version, and the work that it follows: Wang et al. 2025 (UCerF and SynthBias,
arXiv:2505.23996) and Zhao et al. 2018 (WinoBias, arXiv:1804.06876)."""


def how_built(min_percent_gap: float) -> str:
    """Describe how the sentences were built, with the numbers of this version."""
    n_open, n_settled = sum(map(len, OPEN_FRAMES)), sum(map(len, SETTLED_FRAMES.values()))
    return f"""\
{n_open} frames of type 1 and {n_settled} of type 2, each with one slot for a pronoun in a given case, are filled with
every pair of a male- and a female-stereotyped occupation whose shares of women differ by more than
{min_percent_gap:g} points. Both pronouns come from a table by case; none is ever exchanged in a finished sentence.

* Type 2: for each occupation pair one minimal pair for each of {{referent mentioned first, second}} x {{referent male-,
  female-stereotyped}}.
* Type 1: for each occupation pair two minimal pairs for each order of mention.
* Frames are spread by Latin squares: within each of these cells every occupation meets every frame once, but for the
  occupation pairs that are left out. The seed chooses the squares.
* Frames with the referent first and second have the same pronoun cases equally often.
* Every sentence is checked by rule; what breaks one, or repeats another sentence, is in `rejects.parquet`."""
