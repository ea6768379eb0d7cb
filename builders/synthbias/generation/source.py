"""The source *generated*: minimal pairs from the answers of a language model.

It follows the recipe of SynthBias (Wang et al. 2025, arXiv:2505.23996): a model writes sentences for each occupation
pair and type, rules reject what breaks the form, and the second side is the first with the other pronoun. Unlike
there, the pronoun is a slot with a case, which is filled for both sides, and each cell of the design has the same
number of pairs. The answers lie beside the items, so that the dataset can be built again from itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import ConfigError
from biasboard.ground.progress import Report
from builders.dataset.output import Draft, ExtraFile, Rule
from builders.dataset.protected import digests_of, holds_protected
from builders.synthbias.cards import synthbias_card
from builders.synthbias.checks import CATALOGUE, GENERATED, Duplicates, Finding, Sentence, first_finding
from builders.synthbias.checks.sentence import Claims
from builders.synthbias.generation import card as texts
from builders.synthbias.generation.answers import ANSWER_RULES, Answered, Answers, Candidate, read_answers
from builders.synthbias.generation.cells import CONFIGS
from builders.synthbias.generation.writing import version
from builders.synthbias.minimal_pair import GENDERS, items_of, split_of
from builders.synthbias.pair_selection import take_pairs
from builders.synthbias.published_digests import PROTECTED
from schemas.documents.dataset import Reject, Source
from schemas.documents.result import Model
from schemas.folders.dataset_folder import MANIFEST, read_manifest
from schemas.folders.run_folder import RECORDS
from schemas.items.coreference import CoreferenceItem

NAME = "synthbias-generated"
BUILDER_VERSION = "1.0"
DATASET_VERSION = "1.0.0"
DEFAULT_PER_CELL = 5
GENERATION_FOLDER = "generation"

WRONG_ORDER = Rule(
    name="wrong_order", description="the occupations of the cell are named in the order that was asked for"
)
PUBLISHED = Rule(
    name="published_text",
    description="is no sentence of the published SynthBias, which a licence keeps from being shared",
)
CELL_FULL = Rule(name="cell_full", description="the cell had fewer minimal pairs than it needs")
_REPEATS = ("repeated_text", "repeated_wording", "repeated_apart_from_pronoun", "repeated_template", "near_duplicate")


class Limits(NamedTuple):
    """The limits by which sentences of a model are kept."""

    per_cell: int = DEFAULT_PER_CELL
    """Number of minimal pairs of each cell."""
    near: float | None = None
    """Jaccard similarity of the wording from which a sentence is too similar to an earlier one; None for none."""
    template_cap: int = 36
    """Largest number of sentences with one template; that of the most frequent one in the published SynthBias."""


def limits_of(path: Path, per_cell: int | None, near: float | None) -> Limits:
    """Return the limits that the user gives, or else those of the dataset at a path, or else the default ones.

    Args:
        path: Folder of runs, or of a generated dataset, whose items are then the same again.
        per_cell: Number of minimal pairs of each cell; None if it is not given.
        near: Similarity from which a sentence is too similar to an earlier one; None if it is not given.
    """
    known = read_manifest(path).parameters if (path / MANIFEST).is_file() else {}
    per_cell_before, near_before = known.get("per_cell"), known.get("near_duplicates")
    return Limits(
        per_cell or (per_cell_before if isinstance(per_cell_before, int) else DEFAULT_PER_CELL),
        near if near is not None else near_before if isinstance(near_before, float) else None,
    )


class Checked(NamedTuple):
    """The minimal pairs and rejects that checking the candidates gave."""

    items: tuple[CoreferenceItem, ...]
    rejects: tuple[Reject, ...]


def draft(path: Path, limits: Limits, *, limit: int | None, report: Report) -> Draft[CoreferenceItem]:
    """Build a draft of a generated dataset.

    Args:
        path: Folder of runs, or of a generated dataset.
        limits: Limits by which sentences are kept.
        limit: Maximum number of items; None for all.
        report: Function that is called with the progress.

    Raises:
        ConfigError: no candidate is left, or the limit is too small.
        DataError: there is no run, a file is broken, or several models answered.
    """
    answers = read_answers(path, report)
    checked = check(answers.candidates, limits, report=report)
    raw, runs = answers.rejects, answers.runs
    if any(reject.rule == PUBLISHED.name for reject in checked.rejects):
        # The answers hold sentences that must not be shared, and a dataset is published with all its files.
        raw, runs = tuple(replace(reject, candidate="") for reject in raw), ()
    if not checked.items:
        rules = Counter(reject.rule for reject in (*raw, *checked.rejects))
        told = ", ".join(f"{rule} {n}" for rule, n in rules.most_common(3))
        raise ConfigError(f"--input {path}: no minimal pair is left of its answers ({told}); ask another model")
    splits = [split_of(config, checked.items) for config in CONFIGS]
    splits_kept = take_pairs([split for split in splits if split.items], limit)
    return Draft(
        name=NAME,
        benchmark="synthbias",
        version=DATASET_VERSION,
        title=f"SynthBias, written by {answers.model.id}",
        builder="builders.synthbias.generation",
        builder_version=BUILDER_VERSION,
        parameters={
            "source": "generated",
            "per_cell": limits.per_cell,
            "near_duplicates": limits.near,
            "template_cap": limits.template_cap,
            "limit": limit,
        },
        seed=None,
        sources=_sources(answers),
        generator_model=generator_name(answers.model),
        licence="Apache-2.0",
        publish_refusal=None,
        human_validated=False,
        splits=splits_kept,
        rejects=(*raw, *checked.rejects),
        reject_rules=reject_rules(),
        flag_rules=(),
        card=synthbias_card(
            data_statement=texts.data_statement(answers.model),
            how_built=texts.how_built(answers, limits.per_cell, are_kept=bool(runs)),
            annotation=texts.ANNOTATION,
            biases=texts.BIASES,
            licence_terms=texts.LICENCE_TERMS,
            known_limits=texts.KNOWN_LIMITS,
            citation=texts.CITATION,
            splits=splits_kept,
        ),
        extra_files=tuple(_files(runs)),
    )


def generator_name(model: Model) -> str:
    """Return the name of the model that wrote, with its revision if it is known."""
    return model.id if model.revision is None else f"{model.id}@{model.revision}"


def reject_rules() -> tuple[Rule, ...]:
    """Return every rule by which answers and sentences are rejected, in the order in which they are applied."""
    checks = (CATALOGUE[name].as_rule() for name in (*GENERATED, *_REPEATS))
    return (*ANSWER_RULES, PUBLISHED, WRONG_ORDER, *checks, CELL_FULL)


def check(
    candidates: Iterable[Candidate], limits: Limits, *, report: Report, published: frozenset[bytes] | None = None
) -> Checked:
    """Turn each candidate into a minimal pair, or into a reject with the first rule that it breaks.

    Args:
        candidates: Sentences that the model wrote.
        limits: Limits by which sentences are kept.
        report: Function that is called with the progress.
        published: Digests of texts that must not be shared; None for those of the published SynthBias.
    """
    published = digests_of(PROTECTED.digests) if published is None else published
    items: list[CoreferenceItem] = []
    rejects: list[Reject] = []
    seen, n_kept = Duplicates(template_cap=limits.template_cap, near=limits.near), Counter[str]()
    for number, candidate in enumerate(candidates):
        if number % 1000 == 0:
            report("checking sentences", number, None)
        text = candidate.slotted.filled("masculine")
        if holds_protected(text, published):
            # The rejects are published with the items.
            reason = "apart from its pronoun, it is a sentence of the published SynthBias"
            rejects.append(Reject(candidate="", source_row=candidate.row, rule=PUBLISHED.name, reason=reason))
            continue
        finding = _finding(candidate, seen, n_kept[candidate.cell.key] >= limits.per_cell)
        if finding is None:
            n_kept[candidate.cell.key] += 1
            items.extend(items_of(candidate.slotted, template_id=None, source_row=candidate.row))
        else:
            rejects.append(Reject(candidate=text, source_row=candidate.row, rule=finding.check, reason=finding.reason))
    return Checked(tuple(items), tuple(rejects))


def _finding(candidate: Candidate, seen: Duplicates, is_full: bool) -> Finding | None:
    """Return the first finding about a candidate; None for one that is kept, which is then remembered."""
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
        return Finding(WRONG_ORDER.name, f"names {' and '.join(named)}, not {slotted.first} first", "error")
    repeated = seen.add(sides[0])
    if repeated is None and is_full:
        return Finding(CELL_FULL.name, "the cell has as many minimal pairs as it needs", "note")
    return repeated


def _files(runs: Sequence[Answered]) -> Iterable[ExtraFile]:
    """Yield the files of the runs under numbered folders, in an order that does not depend on where they lay."""
    for number, run in enumerate(runs, start=1):
        for name, content in run.files.items():
            yield ExtraFile(
                name=f"{GENERATION_FOLDER}/{number}/{name}",
                content=content,
                description="answers of the model" if name == RECORDS else "how the model was asked",
            )


def _sources(answers: Answers) -> tuple[Source, ...]:
    return (
        Source(
            name=f"answers of {answers.model.id}",
            address=GENERATION_FOLDER,
            revision=answers.model.revision,
            sha256=None,
            licence="Apache-2.0",
            redistributable=True,
        ),
        Source(
            name="instructions of this project",
            address="builders/synthbias/texts/writing.toml",
            revision=version(),
            sha256=None,
            licence="Apache-2.0",
            redistributable=True,
        ),
    )
