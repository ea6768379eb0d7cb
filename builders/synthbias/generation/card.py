"""The text of the card of a generated dataset."""

from __future__ import annotations

from builders.dataset.card import Annotation
from builders.synthbias.generation.answers import Answers
from builders.synthbias.generation.writing import version
from schemas.documents.result import Model

LICENCE_TERMS = """\
The instructions and the code are licensed under Apache-2.0. The sentences were written by a model, whose terms may
limit what they may be used for: read them before you publish this dataset."""

KNOWN_LIMITS = """\
* **No human has validated the sentences.** The model was asked to write open and settled sentences, and code checks
  their form: only readers can tell whether a pronoun is really open or settled (`annotate`).
* A model that wrote the sentences may find them easier than others do; do not rank it on them.
* Two genders of pronouns, one language, the labour market of one country and year.
* A stereotype is nothing but membership of the WinoBias lists, which split the occupations at 50 percent women."""

ANNOTATION = Annotation(
    protocol=(
        "Nobody annotated the items. Whether a sentence is open, and whom its pronoun means, is what the model was "
        "asked to write; code checks the form alone."
    ),
    annotators="None.",
    per_item="0",
)

BIASES = """\
* The sentences repeat what the model holds to be usual about occupations and people.
* Two genders alone: nobody is called by any other pronoun.
* A stereotype is membership of the lists of WinoBias, which stand for the labour market of the United States."""

CITATION = """\
Cite this project with the dataset version, the model that wrote, and the work that it follows: Wang et al. 2025 (UCerF
and SynthBias, arXiv:2505.23996) and Zhao et al. 2018 (WinoBias, arXiv:1804.06876)."""


_KEPT = """\
The answers lie in `generation/`, one folder for each run: `python -m builders.synthbias --source generated --input`
with this folder builds the same items again, without the model."""
_LEFT_OUT = """\
The answers are not part of the dataset, because the model wrote sentences of the published SynthBias, which must not be
shared. Those sentences are rejected, and no text of an answer that could not be read is kept."""


def data_statement(model: Model) -> str:
    """Return the statement about the data."""
    return f"""\
American English sentences that `{model.id}` wrote, each with two of the 40 occupations of WinoBias and one form of
*he* or *she* after both. Config `type1`: the model was asked for sentences in which either may be meant (`referent` is
null, and `reference` is the occupation mentioned first). Config `type2`: it was told who is to be meant. The two items
of a `pair_id` differ in exactly one token, the pronoun. `cluster` is the occupation pair, `source_row` the instruction
and the place of the sentence in its answer."""


def how_built(answers: Answers, per_cell: int, *, are_kept: bool) -> str:
    """Describe how the sentences were built."""
    n_answers = sum(answers.samples.values())
    return f"""\
A cell of the design is an occupation pair, an order of mention and, for type 2, who is meant. The model was asked
{n_answers} instructions (version {version()}) and wrote {len(answers.candidates)} sentences in the form that was asked
for: a text before a gap, the grammatical case of the pronoun, and a text after it. Both pronouns come from a table by
case; none is ever exchanged in a finished sentence. Of each cell, the first {per_cell} sentences are kept that no rule
rejects and that repeat no other one of either type; every other sentence and answer stands in `rejects.parquet` with
its rule.

{_KEPT if are_kept else _LEFT_OUT}"""
