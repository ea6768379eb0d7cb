"""The source *generated*: minimal pairs from the answers of a language model.

It follows the recipe of SynthBias (Wang et al. 2025, arXiv:2505.23996): a model writes sentences for each occupation
pair and type, rules reject what breaks the form, and the second side is the first with the other pronoun. Unlike
there, the model leaves a slot with a case, which is filled for both sides, and each cell of the design gets the same
number of pairs. The answers are kept in the dataset, so that it can be rebuilt from itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from biasboard.ground.errors import ConfigError
from biasboard.ground.progress import Report
from builders.dataset.card import Annotation, Card
from builders.dataset.licences import digests_of, holds_protected
from builders.dataset.output import Draft, DraftSplit, ExtraFile, Rule
from builders.synthbias import PROTECTED
from builders.synthbias.cards import synthbias_card
from builders.synthbias.checks.catalogue import CATALOGUE, GENERATED, Duplicates, first_finding
from builders.synthbias.checks.check import Claims, Sentence, SentenceFinding
from builders.synthbias.generation.instructions import instructions_source, version
from builders.synthbias.generation.written_sentences import (
    ANSWER_RULES,
    WrittenAnswers,
    WrittenSentence,
    read_answers,
)
from builders.synthbias.minimal_pairs import CONFIGS, GENDERS, CheckedItems, items_of, split_of, take_pairs
from schemas.documents.dataset import Reject, Source
from schemas.folders.dataset_folder import MANIFEST, read_manifest
from schemas.folders.run_folder import RECORDS, RESULT
from schemas.items.coreference import CoreferenceItem

NAME = "synthbias-generated"
BUILDER_VERSION = "1.1"
DEFAULT_PER_CELL = 5
GENERATION_FOLDER = "generation"
_TEMPLATE_CAP = 36
"""Maximum number of sentences per template: the most frequent template of the published SynthBias has 36."""

WRONG_ORDER = Rule(
    name="wrong_order", description="the occupations of the cell are named in the order that was asked for"
)
PUBLISHED = Rule(
    name="published_text",
    description="is no sentence of the published SynthBias, which a licence keeps from being shared",
)
CELL_FULL = Rule(name="cell_full", description="the cell had fewer minimal pairs than it needs")
_REPEATS = ("repeated_text", "repeated_wording", "repeated_apart_from_pronoun", "repeated_template")


def per_cell_of(path: Path) -> int:
    """Return the number of minimal pairs to keep in each cell: that of a generated dataset, or the default for runs."""
    parameters = read_manifest(path).parameters if (path / MANIFEST).is_file() else {}
    before = parameters.get("per_cell")
    return before if isinstance(before, int) else DEFAULT_PER_CELL


def draft(path: Path, per_cell: int, *, limit: int | None, report: Report) -> Draft[CoreferenceItem]:
    """Build a draft of a generated dataset.

    Args:
        path: Folder of runs, or of a generated dataset.
        per_cell: Number of minimal pairs to keep in each cell.
        limit: Maximum number of items; None for all.
        report: Function that is called with the progress.

    Raises:
        ConfigError: no candidate is left, or the limit is too small.
        DataError: there is no run, a file is broken, or the runs are of several models.
    """
    answers = read_answers(path, report)
    checked = check(answers.candidates, per_cell, report=report)
    raw, runs = answers.rejects, answers.runs
    if any(reject.rule == PUBLISHED.name for reject in checked.rejects):
        # The answers hold sentences that must not be shared, and a dataset is published with all its files.
        raw, runs = tuple(replace(reject, candidate="") for reject in raw), ()
    if not checked.items:
        rules = Counter(reject.rule for reject in (*raw, *checked.rejects))
        counts = ", ".join(f"{rule} {n}" for rule, n in rules.most_common(3))
        raise ConfigError(f"--input {path}: no minimal pair is left of its answers ({counts}); ask another model")
    checks = (CATALOGUE[name].as_rule() for name in (*GENERATED, *_REPEATS))
    writer, revision = answers.model.id, answers.model.revision
    splits = [split_of(config, checked.items) for config in CONFIGS]
    splits_kept = take_pairs([split for split in splits if split.items], limit)
    return Draft(
        name=NAME,
        benchmark="synthbias",
        title=f"SynthBias, written by {writer}",
        builder="builders.synthbias.generation",
        builder_version=BUILDER_VERSION,
        parameters={
            "source": "generated",
            "per_cell": per_cell,
            "template_cap": _TEMPLATE_CAP,
            "limit": limit,
            "n_calls": answers.n_calls,
            "cost_usd": answers.cost_usd,
        },
        sources=(
            Source(
                name=f"answers of {writer}",
                address=GENERATION_FOLDER,
                revision=revision,
                sha256=None,
                licence="Apache-2.0",
                redistributable=True,
            ),
            instructions_source(),
        ),
        generator_model=writer if revision is None else f"{writer}@{revision}",
        licence="Apache-2.0",
        splits=splits_kept,
        rejects=(*raw, *checked.rejects),
        reject_rules=(*ANSWER_RULES, PUBLISHED, WRONG_ORDER, *checks, CELL_FULL),
        card=_card(answers, per_cell, splits_kept, are_kept=bool(runs)),
        # In numbered folders, whose order does not depend on the original paths.
        extra_files=tuple(
            ExtraFile(
                name=f"{GENERATION_FOLDER}/{number}/{file}",
                content=(folder / file).read_bytes(),
                description="answers of the model" if file == RECORDS else "how the model was asked",
            )
            for number, (folder, _) in enumerate(runs, 1)
            for file in (RECORDS, RESULT)
        ),
    )


def check(
    candidates: Iterable[WrittenSentence],
    per_cell: int,
    *,
    report: Report,
    published: frozenset[bytes] | None = None,
) -> CheckedItems:
    """Turn each candidate into a minimal pair, or into a reject with the first rule that it breaks.

    Args:
        candidates: Sentences that the model wrote.
        per_cell: Number of minimal pairs to keep in each cell.
        report: Function that is called with the progress.
        published: Digests of texts that must not be shared; None for those of the published SynthBias.
    """
    published = digests_of(PROTECTED.digests) if published is None else published
    items: list[CoreferenceItem] = []
    rejects: list[Reject] = []
    seen, n_kept = Duplicates(template_cap=_TEMPLATE_CAP), Counter[str]()
    for number, candidate in enumerate(candidates):
        if number % 1000 == 0:
            report("checking sentences", number, None)
        text = candidate.slotted.filled("masculine")
        if holds_protected(text, published):
            rejects.append(published_reject(candidate.row))
            continue
        finding = _finding(candidate, seen, n_kept[candidate.cell.key] >= per_cell)
        if finding is None:
            n_kept[candidate.cell.key] += 1
            items.extend(items_of(candidate.slotted, template_id=None, source_row=candidate.row))
        else:
            rejects.append(Reject(candidate=text, source_row=candidate.row, rule=finding.check, reason=finding.reason))
    return CheckedItems(tuple(items), tuple(rejects))


def published_reject(row: str) -> Reject:
    """Return the reject of a sentence that must not be shared, and so does not stand in it."""
    reason = "apart from its pronoun, it is a sentence of the published SynthBias"
    return Reject(candidate="", source_row=row, rule=PUBLISHED.name, reason=reason)


def _finding(candidate: WrittenSentence, seen: Duplicates, is_full: bool) -> SentenceFinding | None:
    """Return the first finding about a candidate; None if it is kept.

    A candidate that passes the other checks is remembered, so that later ones are compared with it.
    """
    slotted = candidate.slotted
    sides = [
        Sentence(
            text=slotted.filled(gender),
            meant=(slotted.first, slotted.second),
            type=slotted.config,
            referent=slotted.meant,
            gender=gender,
            claimed=Claims(case=slotted.case),
            id=candidate.row,
        )
        for gender in GENDERS
    ]
    for side in sides:
        finding = first_finding(side, GENERATED)
        if finding is not None:
            return finding
    named = [mention.text for mention in sides[0].occupations]
    if named != [slotted.first, slotted.second]:
        return SentenceFinding(WRONG_ORDER.name, f"names {' and '.join(named)}, not {slotted.first} first", "error")
    repeated = seen.add(sides[0])
    if repeated is None and is_full:
        return SentenceFinding(CELL_FULL.name, "the cell has as many minimal pairs as it needs", "note")
    return repeated


_KEPT = """\
The answers lie in `generation/`, one folder for each run: `biasboard build synthbias --source generated --input`
with this folder builds the same items again, without the model."""
_LEFT_OUT = """\
The answers are not part of the dataset, because the model wrote sentences of the published SynthBias, which must not be
shared. Those sentences are rejected, and no text of an answer that could not be read is kept."""


def _card(
    answers: WrittenAnswers, per_cell: int, splits: Sequence[DraftSplit[CoreferenceItem]], *, are_kept: bool
) -> Card:
    writer, n_answers = answers.model.id, sum(answers.samples.values())
    cost = "a cost that is unknown, because no prices were given"
    if answers.cost_usd is not None:
        cost = f"{answers.cost_usd:.2f} US dollars"
    return synthbias_card(
        data_statement=f"""\
American English sentences that `{writer}` wrote, each with two of the 40 occupations of WinoBias and one form of
*he* or *she* after both. Config `type1`: the model was asked for sentences in which either may be meant (`referent` is
null, and `reference` is the occupation mentioned first). Config `type2`: it was told who is to be meant. The two items
of a `pair_id` differ in exactly one token, the pronoun. `cluster` is the occupation pair, `source_row` the instruction
and the place of the sentence in its answer.""",
        how_built=f"""\
A cell of the design is an occupation pair, an order of mention and, for type 2, who is meant. The model was asked
{n_answers} instructions (version {version()}) and wrote {len(answers.candidates)} sentences in the form that was asked
for: a text before a gap, the grammatical case of the pronoun, and a text after it. Both pronouns come from a table by
case; none is ever exchanged in a finished sentence. Of each cell, the first {per_cell} sentences are kept that no rule
rejects and that repeat no other one of either type; every other sentence and answer stands in `rejects.parquet` with
its rule. It took {answers.n_calls} calls of the model, with those repeated after errors, and {cost}.

{_KEPT if are_kept else _LEFT_OUT}""",
        annotation=Annotation(
            protocol=(
                "Nobody annotated the items. Whether a sentence is open, and whom its pronoun means, is what the model "
                "was asked to write; code checks the form alone."
            ),
            annotators="None.",
            per_item="0",
        ),
        biases="""\
* The sentences repeat what the model holds to be usual about occupations and people.
* Two genders alone: nobody is called by any other pronoun.
* A stereotype is membership of the lists of WinoBias, which stand for the labour market of the United States.""",
        licence_terms="""\
The instructions and the code are licensed under Apache-2.0. The sentences were written by a model, whose terms may
limit what they may be used for: read them before you publish this dataset.""",
        known_limits="""\
* **No human has validated the sentences.** The model was asked to write open and settled sentences, and code checks
  their form: only readers can tell whether a pronoun is really open or settled (`annotate`).
* A model that wrote the sentences may find them easier than others do; do not rank it on them.
* Two genders of pronouns, one language, the labour market of one country and year.
* A stereotype is nothing but membership of the WinoBias lists, which split the occupations at 50 percent women.""",
        citation="""\
Cite this project with the dataset version, the model that wrote, and the work that it follows: Wang et al. 2025 (UCerF
and SynthBias, arXiv:2505.23996) and Zhao et al. 2018 (WinoBias, arXiv:1804.06876).""",
        splits=splits,
    )
