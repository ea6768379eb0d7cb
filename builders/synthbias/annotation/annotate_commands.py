"""The commands of ``annotate`` but ``serve``: ``plan``, ``export``, ``ingest``, ``exclude``, ``report``, ``decide``."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import replacing
from builders.build_command import Overwrite, closing_lines, run_line
from builders.dataset.output import check_target, write_dataset
from builders.description import DATASETS_FOLDER
from builders.synthbias.annotation.accepted import accepted_draft, verdict_lines
from builders.synthbias.annotation.agreement import report_lines
from builders.synthbias.annotation.annotated import AnnotatedDataset, read_annotated, sentence_of
from builders.synthbias.annotation.deciding import Policy, StopRule, decide_pairs
from builders.synthbias.annotation.entrance import DEFAULT_PERCENT, TEST, TEST_PAIRS, EntranceScore, status_of
from builders.synthbias.annotation.model_votes import questions_draft
from builders.synthbias.annotation.planning import (
    Request,
    batch_paths,
    chosen_batch,
    n_outstanding,
    plan_batch,
    read_batch,
    write_batch,
)
from builders.synthbias.annotation.platforms import (
    COLUMNS,
    Format,
    batch_files,
    column_map,
    entrance_files,
    read_submissions,
)
from builders.synthbias.annotation.state import (
    State,
    check_dataset,
    check_outside_datasets,
    locked,
    note_dataset,
    read_state,
    write_state,
)
from builders.synthbias.annotation.vote_intake import take_in
from builders.synthbias.annotation.votes import NO_NAME, AnnotatorKind, Status, is_name, reader_name

_MOST_LISTED = 10
"""Number of refused submissions that are listed; their reasons are all counted."""

DatasetFolder: TypeAlias = Annotated[Path, typer.Argument(help="Folder of the dataset that is annotated.")]
StateFolder: TypeAlias = Annotated[
    Path, typer.Option("--state", help="Folder that keeps votes, annotators and batches.")
]
Stop: TypeAlias = Annotated[
    StopRule,
    typer.Option(
        help="Stop when every answer is clear by the shares that accept and reject a sentence (clear), or at a "
        "consensus of 75 percent on every question, which rejects good sentences (paper)."
    ),
]
Relabel: TypeAlias = Annotated[
    bool, typer.Option("--relabel", help="Accept pairs of type 2 that the votes find open, as type 1.")
]
CountModels: TypeAlias = Annotated[
    bool, typer.Option("--count-models", help="Count the votes of models like those of people.")
]
CountUntested: TypeAlias = Annotated[
    bool,
    typer.Option("--count-untested", help="Count annotators without an entrance test, if they were tested elsewhere."),
]
EntrancePercent: TypeAlias = Annotated[
    int,
    typer.Option(min=0, max=100, help="Share of the entrance test that must be right, in percent."),
]


def fitting_state(annotated: AnnotatedDataset, folder: Path, *, may_be_new: bool = False) -> State:
    """Read a state whose votes are on the sentences of a dataset, and warn if some are not.

    Args:
        annotated: The dataset.
        folder: Folder of the state.
        may_be_new: True to return an empty state if there is none.

    Raises:
        ConfigError: there is no state.
        DataError: the state was begun on another dataset, or no vote is on a sentence of this one; votes of the
            entrance test fit any dataset.
    """
    state = read_state(folder)
    if not may_be_new and not folder.exists():
        raise ConfigError(
            f"--state {folder}: no such folder, so that there are no votes; give the one of annotate ingest or serve"
        )
    check_dataset(folder, annotated.folder, annotated.manifest)
    voted = [vote.item_id for vote in state.standing_votes.values() if vote.item_id not in TEST_PAIRS]
    n_foreign = sum(item_id not in annotated.items for item_id in voted)
    if n_foreign:
        fault = f"--state {folder}: {n_foreign} of {len(voted)} votes are on sentences that are not in "
        remedy = "give the dataset and the state that belong together"
        if n_foreign == len(voted):
            raise DataError(f"{fault}{annotated.folder}; {remedy}")
        typer.echo(f"{fault}{annotated.folder}; they count for nothing here: {remedy}", err=True)
    return state


def checked_name(text: str) -> str:
    """Return the name of an annotator, given as an option or an argument, as it is kept.

    Raises:
        ConfigError: it is empty, too long, or holds invisible characters.
    """
    name = reader_name(text)
    if not is_name(name):
        raise ConfigError(f"annotator '{name}' {NO_NAME}")
    return name


def say_uncounted(state: State, policy: Policy) -> None:
    """Print how many annotators' votes do not count because they lack an entrance test, if any."""
    n_untested = sum(annotator.status is Status.UNTESTED for annotator in state.annotators.values())
    if n_untested and not policy.count_untested:
        typer.echo(
            f"{n_untested} annotators have finished no entrance test, so that their votes do not count: have them take "
            "it (annotate export --entrance), or give --count-untested if they were tested elsewhere"
        )


@one_line_errors()
def plan(
    dataset: DatasetFolder,
    state_folder: StateFolder,
    annotator: Annotated[
        list[str] | None,
        typer.Option(help="Annotator to assign sentences to; repeatable. Default: leave open who votes."),
    ] = None,
    stop_rule: Stop = StopRule.CLEAR,
    relabel: Relabel = False,
    count_models: CountModels = False,
    count_untested: CountUntested = False,
) -> None:
    """Plan the next batch: the sentences that need more votes.

    Sentences are in group A or B, the two sides of a pair in different ones: give each group to other people. A
    sentence whose other side is rejected is not asked again, because the pair is decided.
    """
    annotated = read_annotated(dataset)
    policy = Policy(stop_rule=stop_rule, relabel=relabel, count_models=count_models, count_untested=count_untested)
    names = tuple(dict.fromkeys(map(checked_name, annotator or ())))
    with locked(state_folder):
        state = fitting_state(annotated, state_folder, may_be_new=True)
        for name in names:
            recorded = state.annotators.get(name)
            if recorded is not None and recorded.status in (Status.EXCLUDED, Status.FAILED):
                raise ConfigError(
                    f"--annotator {name}: is {recorded.status}, so that the votes would not count; name another"
                )
        decisions = decide_pairs(annotated, state, policy)
        sides = [side for pair in decisions for side in pair.sides]
        requests = plan_batch(decisions, annotated.groups, state, names)
        batches = batch_paths(state_folder)
        n_now = {side.item.item_id: side.tally.coherent.n for side in sides}
        n_missing = n_outstanding(read_batch(batches[-1]), n_now) if batches else 0
        path = write_batch(state_folder, requests) if requests else None
        note_dataset(state_folder, annotated.manifest)
    n_needed = sum(side.n_to_ask for pair in decisions if pair.verdict == "undecided" for side in pair.sides)
    n_planned = sum(request.n_votes for request in requests)
    typer.echo(f"{n_needed} more votes are needed at least, in {len(decisions)} pairs")
    if path is None:
        exhausted = ": everybody named has seen a side of every open pair; name more annotators"
        typer.echo("nothing to ask" + (exhausted if n_needed else ""))
    else:
        typer.echo(f"{path}: {len({request.item_id for request in requests})} sentences, {n_planned} votes")
        if n_planned < n_needed:
            typer.echo(f"{n_needed - n_planned} votes find nobody: name more annotators")
    if n_missing and path not in (None, batches[-1]):
        typer.echo(
            f"batch {batches[-1].stem} still lacks {n_missing} votes; take them in first, or they are asked twice"
        )
    say_uncounted(state, policy)


@one_line_errors()
def export(
    dataset: DatasetFolder,
    state_folder: StateFolder,
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    form: Annotated[Format, typer.Option("--file-format", help="Format of the files.")] = Format.CSV,
    batch: Annotated[int | None, typer.Option(min=1, help="Number of the batch. Default: the last one.")] = None,
    entrance: Annotated[
        bool, typer.Option("--entrance", help="Write the entrance test in place of a batch, without its answers.")
    ] = False,
) -> None:
    """Write a batch, or the entrance test, for a platform."""
    check_outside_datasets("--state", state_folder)
    check_outside_datasets("--out", out, is_dataset=form is Format.MODEL)
    if form is Format.MODEL:
        _write_questions(dataset, state_folder, out, batch)
        return
    if entrance:
        files = entrance_files(form)
        counts = f"{len(TEST)} sentences of the entrance test"
    else:
        annotated = read_annotated(dataset)
        path, requests = _requests(annotated, state_folder, batch)
        sentences = {request.item_id: sentence_of(annotated.items[request.item_id]) for request in requests}
        files = batch_files(path.stem, requests, sentences, form)
        counts = f"{len(sentences)} sentences of batch {path.stem}, licence {annotated.manifest.licence}"
    for name, content in files.items():
        with replacing(out / name) as temporary:
            temporary.write_bytes(content.encode("utf-8"))
        typer.echo(str(out / name))
    typer.echo(counts)
    if form is Format.CSV:
        typer.echo(
            "next: have people write their name under annotator_id and yes or no under coherent, first and second, each"
            f" in a copy of one file, then annotate ingest {shlex.quote(str(dataset))} FILES --state "
            f"{shlex.quote(str(state_folder))}"
        )


def _requests(annotated: AnnotatedDataset, state_folder: Path, batch: int | None) -> tuple[Path, list[Request]]:
    """Return the path and the requests of a batch, all of whose sentences must be in the dataset."""
    check_dataset(state_folder, annotated.folder, annotated.manifest)
    path = chosen_batch(state_folder, batch)
    requests = read_batch(path)
    unknown = next((request.item_id for request in requests if request.item_id not in annotated.items), None)
    if unknown is not None:
        raise DataError(
            f"{path}: item '{unknown}' is not in {annotated.folder}; give the dataset of the plan, or plan again"
        )
    return path, requests


def _write_questions(dataset: Path, state_folder: Path, out: Path, batch: int | None) -> None:
    """Write the sentences of a batch, and those of the entrance test, as a dataset that a model is asked."""
    annotated = read_annotated(dataset)
    path, requests = _requests(annotated, state_folder, batch)
    item_ids = dict.fromkeys(request.item_id for request in requests)
    draft = questions_draft(annotated, [sentence_of(annotated.items[item_id]) for item_id in item_ids])
    manifest = write_dataset(draft, out, overwrite=True)
    typer.echo(f"{manifest.splits[0].n_items} sentences of batch {path.stem} and of the entrance test, in {out}")
    typer.echo(
        f"next: biasboard run --dataset {shlex.quote(str(out))} --backend BACKEND --model MODEL --prompt "
        "greedy-v1 --out out/votes, then annotate ingest --file-format model out/votes"
    )


@one_line_errors()
def ingest(
    dataset: DatasetFolder,
    files: Annotated[list[Path], typer.Argument(help="Files with votes.")],
    state_folder: StateFolder,
    form: Annotated[Format, typer.Option("--file-format", help="Format of the files.")] = Format.CSV,
    mapped: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            help="FIELD=COLUMN, the column of a field in another tool's CSV file, with a row for each sentence and "
            f"person; repeatable. Fields: {', '.join(COLUMNS)}.",
        ),
    ] = None,
    kind: Annotated[
        AnnotatorKind | None,
        typer.Option(help="Kind of the annotators. Default: model with --file-format model, or else human."),
    ] = None,
    entrance_percent: EntrancePercent = DEFAULT_PERCENT,
) -> None:
    """Take votes in from files of a platform.

    The first vote of a person on a question is kept, and a person votes on one side of a pair. What is refused is
    counted and listed. The same file may be taken in again. A broken file changes nothing.
    """
    if form is Format.MODEL and kind is AnnotatorKind.HUMAN:
        raise ConfigError("--kind human: --file-format model reads the answers of models; leave --kind out")
    voters = AnnotatorKind.MODEL if form is Format.MODEL else kind or AnnotatorKind.HUMAN
    annotated = read_annotated(dataset)
    columns = column_map(mapped or (), form)
    submissions = [submission for path in files for submission in read_submissions(path, form, columns)]
    with locked(state_folder):
        state = fitting_state(annotated, state_folder, may_be_new=True)
        intake = take_in(annotated, state, submissions, kind=voters, entrance_percent=entrance_percent)
        note_dataset(state_folder, annotated.manifest)
        write_state(state_folder, state, intake.state)
    typer.echo(f"{intake.n_added} votes added, {intake.n_known} known already, {len(intake.refused)} refused")
    for reason, n in intake.refusals.items():
        if n:
            typer.echo(f"  {reason}: {n}")
    for refused in intake.refused[:_MOST_LISTED]:
        typer.echo(f"refused as {refused.refusal}: {refused.where}: {refused.annotator_id} on {refused.item_id}")
    if len(intake.refused) > _MOST_LISTED:
        typer.echo(f"and {len(intake.refused) - _MOST_LISTED} more")
    counts = Counter(annotator.status for annotator in intake.state.annotators.values())
    typer.echo("annotators: " + ", ".join(f"{counts[status]} {status}" for status in Status if counts[status]))


@one_line_errors()
def exclude(
    dataset: DatasetFolder,
    annotator: Annotated[str, typer.Argument(help="Id of the annotator, as in annotators.csv.")],
    state_folder: StateFolder,
    reason: Annotated[str, typer.Option(help="Reason, which stays in the state.")] = "",
    back: Annotated[bool, typer.Option("--back", help="Take the exclusion back.")] = False,
    entrance_percent: EntrancePercent = DEFAULT_PERCENT,
) -> None:
    """Stop counting the votes of an annotator; the votes are kept.

    The next plan, decision and report are computed without them.
    """
    if not back and not reason.strip():
        raise ConfigError("--reason: is missing; say why the votes do not count")
    annotated = read_annotated(dataset)
    annotator = checked_name(annotator)
    fitting_state(annotated, state_folder)  # Without a state, no lock is made either.
    with locked(state_folder):
        state = read_state(state_folder)
        if annotator not in state.annotators:
            raise ConfigError(f"annotator '{annotator}' is not in {state_folder}; look into annotators.csv")
        recorded = state.annotators[annotator]
        if back:
            status = status_of(EntranceScore.parse(recorded.entrance), entrance_percent)
            changed = replace(recorded, status=status, reason="")
        else:
            changed = replace(recorded, status=Status.EXCLUDED, reason=reason)
        write_state(state_folder, state, State(state.rows, {**state.annotators, annotator: changed}))
    typer.echo(f"{annotator}: {changed.status}")


@one_line_errors()
def report(
    dataset: DatasetFolder,
    state_folder: StateFolder,
    stop_rule: Stop = StopRule.CLEAR,
    relabel: Relabel = False,
    count_models: CountModels = False,
    count_untested: CountUntested = False,
) -> None:
    """Show agreement, votes per item, yield, and how each annotator agrees."""
    annotated = read_annotated(dataset)
    state = fitting_state(annotated, state_folder)
    policy = Policy(stop_rule=stop_rule, relabel=relabel, count_models=count_models, count_untested=count_untested)
    print(*report_lines(annotated, state, policy), sep="\n")


@one_line_errors()
def decide(
    dataset: DatasetFolder,
    state_folder: StateFolder,
    out: Annotated[Path | None, typer.Option(help="Dataset folder. Default: out/datasets/NAME.")] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the written dataset. Default: that of the dataset with -annotated.")
    ] = None,
    version: Annotated[
        str | None, typer.Option(help="Version of the written dataset. Default: that of the dataset.")
    ] = None,
    stop_rule: Stop = StopRule.CLEAR,
    relabel: Relabel = False,
    count_models: CountModels = False,
    count_untested: CountUntested = False,
    overwrite: Overwrite = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the verdicts, and write nothing.")] = False,
) -> Path | None:
    """Decide by the votes, and write a dataset of the accepted pairs.

    A pair is accepted if both sides are. What is not, undecided pairs among it, is in rejects.parquet with the rule and
    the votes. The votes are in the folder too, under pseudonyms.
    """
    annotated = read_annotated(dataset)
    name = name or f"{annotated.manifest.name}-annotated"
    folder = out if out is not None else DATASETS_FOLDER / name
    if not dry_run:
        check_outside_datasets("--out", folder, is_dataset=True)
        check_target(folder, overwrite=overwrite)
    state = fitting_state(annotated, state_folder)
    policy = Policy(stop_rule=stop_rule, relabel=relabel, count_models=count_models, count_untested=count_untested)
    decisions = decide_pairs(annotated, state, policy)
    print(*verdict_lines(decisions), sep="\n")
    say_uncounted(state, policy)
    if dry_run:
        return None
    draft = accepted_draft(
        annotated,
        state,
        policy,
        decisions,
        name=name,
        version=version or annotated.manifest.version,
        state_folder=state_folder,
    )
    manifest = write_dataset(draft, folder, overwrite=overwrite)
    typer.echo(f"validated by people: {'yes' if manifest.human_validated else 'no'}")
    print(*closing_lines(manifest, folder), run_line(folder), sep="\n")
    return folder
