"""The text of the card of the embedded dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from builders.dataset.card import Annotation
from builders.synthbias.frames import open_frames, settled_frames
from builders.synthbias.lean import lean_table, measured_leans
from builders.synthbias.readings import agreement_table, n_dropped, readers, readings_table, votes

DATA_STATEMENT = """\
American English sentences, half about work and half about everyday life, each with two of the 40 occupations of
WinoBias and one form of *he* or *she* after both. Config `type1`: both readings are natural, so there is no right
answer (`referent` is null, and `reference` is the occupation mentioned first). Config `type2`: syntax, meaning or
knowledge of the world settles the referent. The two items of a `pair_id` differ in exactly one token, the pronoun.
`cluster` is the occupation pair, `template_id` the frame.

**No human has validated these sentences.** What is ambiguous and what is not was decided when the frames were written.
Language models then read each frame, without the intended answer; frames that they read otherwise were replaced.
Rules in code check form, not meaning."""

ANNOTATION = Annotation(
    protocol=(
        "Nobody annotated the items. Whether a sentence is ambiguous, and whom its pronoun means, belongs to the frame "
        "and was decided when it was written; form is checked by rule. Two language models read each frame without the "
        "intended answer, and frames that they read otherwise were replaced."
    ),
    annotators="No people: two language models read the frames, and their answers are in the card.",
    per_item="0",
)

BIASES = """\
* Two genders alone: nobody is called by any other pronoun.
* A stereotype is membership of the lists of WinoBias, which stand for the labour market of the United States.
* The frames are scenes of ordinary working life as their few authors imagine it, in American English."""

LICENCE_TERMS = "The sentences and their annotation are licensed under Apache-2.0, like the code that writes them."

CITATION = """\
Cite this project with the dataset version, and the work that it follows: Wang et al. 2025 (UCerF and SynthBias,
arXiv:2505.23996) and Zhao et al. 2018 (WinoBias, arXiv:1804.06876)."""


def how_built(min_percent_gap: float) -> str:
    """Describe how the sentences were built, with the numbers of this version."""
    openly, settled = open_frames(), settled_frames()
    return f"""\
{len(openly)} frames of type 1 ({_shares(frame.setting for frame in openly)}) and {len(settled)} of type 2
({_shares(frame.setting for frame in settled)}), each with one slot for a pronoun in a given case, are filled with
every pair of a male- and a female-stereotyped occupation whose shares of women differ by more than
{min_percent_gap:g} points. Both pronouns come from a table by case; none is ever exchanged in a finished sentence.

* Type 1: four frames for each occupation pair, each in both orders of mention.
* Type 2: frames come in twins of equal cue and case, one with the referent mentioned first, one second. Each occupation
  pair gets two twins, each frame in both orders: two minimal pairs for each of {{referent mentioned first, second}} x
  {{referent male-, female-stereotyped}}. What settles the referent: {_shares(frame.cue for frame in settled)}.
* So every frame meets every occupation pair that it is used with in both orders and with both pronouns, and no
  occupation meets a frame with two partners. Latin squares spread the frames; the seed chooses them.
* Every sentence is checked by rule; what breaks one, or repeats another sentence, is in `rejects.parquet`.

{_readings()}"""


def known_limits() -> str:
    """Describe what the dataset cannot tell, with the measured preference of models for a position."""
    n_frames = len(open_frames()) + len(settled_frames())
    versions = sorted({lean.dataset_version for lean in measured_leans()})
    return f"""\
* No human has validated the sentences; both readings of type 1 are possible, but not always equally likely.
* {n_frames} frames are few beside thousands of written sentences. Intervals are clustered by occupation pair and take
  the frames as given: they say nothing about other frames, and by frame they can be wider. Look at single frames
  (`template_id`) as well.
* Two genders of pronouns, one language, the labor market of one country and year.
* A stereotype is nothing but membership of the WinoBias lists, which split the occupations at 50 percent women.

How much models prefer the occupation mentioned first in type 1, measured on version {", ".join(versions)} with the
prompt {", ".join(sorted({lean.prompt for lean in measured_leans()}))}. Every occupation stands first as often as second
there, so that a model without a preference for a position shows 0.5:

{lean_table().markdown()}"""


def _readings() -> str:
    n_read = len({vote.frame_id for vote in votes()})
    return f"""\
Readings: {len(readers())} language models each read every frame once, filled with two occupations of one stereotype and
about equal shares of women, and answered whether it is coherent, whether the pronoun can mean the one and the other,
and whom it more probably means. This is no annotation by people. Of {n_read} frames that were read, {n_dropped()} were
dropped and replaced, because a reader read them otherwise than intended, because too many leaned to the occupation
mentioned first, or because they sounded stilted. The readings of the frames in use (`texts/votes.csv` of the builder):

{readings_table().markdown()}

{agreement_table().markdown()}"""


def _shares(kinds: Iterable[str | None]) -> str:
    return ", ".join(f"{n} {kind}" for kind, n in Counter(kinds).most_common())
