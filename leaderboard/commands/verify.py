"""``python -m leaderboard verify``: results are compared with their datasets, and every number is computed again."""

from __future__ import annotations

import os
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.memory import machine_memory
from biasboard.ground.options import with_options
from biasboard.ground.plain_text import github_annotation, printable
from evaluators.backend import Backend, open_backend
from evaluators.backend_options import BackendOptions
from evaluators.scorer import open_scorers
from leaderboard.benchmark_pages import check_plug_ins
from leaderboard.commands.shared_options import DATASETS, AcceptedResults, DatasetsFolder, Fresh, KeysFolder
from leaderboard.verify.board_files import accepted_results, keys_folder
from leaderboard.verify.comparisons import CompleteRuns, compare_scores
from leaderboard.verify.comparisons import rerun as repeat
from leaderboard.verify.entries import SCORES_TAKEN, is_reproduced, why_insufficient
from leaderboard.verify.keys import open_book
from leaderboard.verify.submissions import read_register, why_not_owner
from leaderboard.verify.verdicts import REPORTED, UNCOMPARED, judge
from schemas.folders.run_folder import RESULT, read_result
from schemas.outputs.documents import Printed, Verdict, Verdicts, as_json, with_format

EXIT_ACCEPTED, EXIT_REJECTED, EXIT_WARNED = 0, 1, 2


@one_line_errors("stopped")
@with_format(Verdicts, others=("github",))
@with_options
def verify(
    *,
    path: Annotated[list[Path], typer.Argument(help="Folders of results, or folders that contain them at any depth.")],
    keys: KeysFolder = None,
    datasets: DatasetsFolder = DATASETS,
    author: Annotated[
        str | None, typer.Option(help="Account that hands the results in; refused if a model belongs to another one.")
    ] = None,
    results: AcceptedResults = None,
    since: Annotated[
        Path | None,
        typer.Option(
            help="Earlier state of the folder, or of a whole git checkout: verify only the results that changed, and "
            "reject every other change."
        ),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="File for the verdicts as JSON, besides what is printed.")] = None,
    fresh: Fresh = False,
    texts: Annotated[
        Path | None,
        typer.Option(help="Folder of complete runs: make results without texts again from these, and compare."),
    ] = None,
    scores: Annotated[
        bool,
        typer.Option(
            "--scores", help="Score some texts again with the trained scorers that are installed, and compare."
        ),
    ] = False,
    rerun: Annotated[
        int | None, typer.Option(min=1, help="Number of items of each result that the model is asked again.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model for --rerun: an id on the Hub or a folder.")] = None,
    backend: Annotated[str | None, typer.Option(help="Backend for --rerun; by default that of the result.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the items for --rerun and of the texts for --scores; drawn by default.")
    ] = None,
    options: BackendOptions,
    output: str = "text",
) -> Printed:
    """Compare results with their datasets and compute every number again.

    Every request, right answer, group and cluster is compared with the answer key of the dataset, and every metric is
    computed from the records; stored corrections of calibrated metrics are fitted again. A result is accepted, accepted
    with warnings, or rejected with the reason. With --rerun, some answers are compared with new ones of the model; with
    --scores, stored scores of trained scorers with new ones; with --texts, results that hold hashes in place of texts
    with complete runs.

    Answers that are like those of another model are told to a maintainer, who decides with accept what they mean. They
    change no verdict, and --format github, whose output is public, leaves them out, also from --report.

    Exit status: 0 all accepted; 1 one was rejected, or bad input; 2 all accepted, one with warnings.
    """
    if since is not None and len(path) > 1:
        raise ConfigError("--since compares one folder with its earlier state; name a single path")
    keys = keys or keys_folder()
    if not keys.is_dir():
        raise ConfigError(f"{keys}: no such folder of answer keys; name the one of the board with --keys")
    check_plug_ins()
    memory = machine_memory(is_fresh=fresh)
    book = open_book(keys, datasets)
    with accepted_results(results) as accepted:
        verdicts, register = list(judge(path, book, memory, since=since, against=accepted)), read_register(accepted)
        if author is not None:
            verdicts = [
                verdict
                if verdict.belongs is None or (why := why_not_owner(register, verdict.belongs, author)) is None
                else replace(verdict, reason=why)
                for verdict in verdicts
            ]
            new = [one.belongs for one in verdicts if one.belongs is not None and one.reason is None]
            tries = register.tries(dict.fromkeys(new, author))
            for told in dict.fromkeys(tries[place] for place in new if place in tries):
                print(printable(told, most=2_000), file=sys.stderr)
        if texts is not None:
            verdicts = list(compared(verdicts, CompleteRuns(texts, book, memory)))
        # A maintainer has compared exactly these results before.
        follow = {one.result_sha256 for one in register.results if one.texts_compared is not None}
        verdicts = [_without_warning(one) if one.result_sha256 in follow else one for one in verdicts]
        drawn_by = secrets.randbits(32) if seed is None else seed
        if scores:
            verdicts = list(scored_again(verdicts, drawn_by))
        if rerun is not None:
            if model is None:
                raise ConfigError("--rerun asks a model again; name it with --model")
            ask = cache(lambda name: open_backend(name, model, options))
            verdicts = [_asked_again(one, ask, backend, datasets, rerun, drawn_by) for one in verdicts]
        if output == "github":
            verdicts = [replace(verdict, likenesses=()) for verdict in verdicts]
        document = Verdicts(verdicts=tuple(verdicts))
        if report is not None:
            report.write_text(as_json(document), encoding="ascii")
        for verdict in verdicts:
            print(_annotation(verdict) if output == "github" else _line(verdict))
        if output == "text" and len(verdicts) > 1:
            counts = Counter(verdict.state for verdict in verdicts)
            print(", ".join(f"{n} {state}" for state, n in sorted(counts.items())))
        states = {verdict.state for verdict in verdicts}
        accepted_as = EXIT_WARNED if "accepted with warnings" in states else EXIT_ACCEPTED
        return Printed(document, EXIT_REJECTED if "rejected" in states else accepted_as)


def compared(verdicts: Sequence[Verdict], complete: CompleteRuns) -> Iterator[Verdict]:
    """Yield the verdicts, those of results without texts after a comparison with their complete runs."""
    lacking = [Path(one.place) for one in verdicts if one.reason is None and UNCOMPARED in one.warnings]
    problems = dict(zip(lacking, complete.problems(lacking), strict=True))
    for verdict in verdicts:
        if (place := Path(verdict.place)) not in problems:
            yield verdict
        elif (problem := problems[place]) is not None:
            yield replace(verdict, reason=problem)
        else:
            yield replace(_without_warning(verdict), texts_compared=True)


def _without_warning(verdict: Verdict) -> Verdict:
    return replace(verdict, warnings=tuple(warning for warning in verdict.warnings if warning != UNCOMPARED))


def scored_again(verdicts: Sequence[Verdict], seed: int) -> Iterator[Verdict]:
    """Yield the verdicts, those of results whose scores were taken as stored after some texts were scored again."""
    scorers = open_scorers(None).scorers if any(verdict.scorers_taken for verdict in verdicts) else ()
    for verdict in verdicts:
        if verdict.reason is not None or not verdict.scorers_taken:
            yield verdict
            continue
        try:
            compared_again = compare_scores(Path(verdict.place), scorers, seed=seed)
        except DataError as error:
            yield replace(verdict, reason=str(error))
            continue
        if not {*verdict.scorers_taken} <= {*compared_again}:
            yield verdict
            continue
        warnings = tuple(said for said in verdict.warnings if not said.startswith(f"{REPORTED}: {SCORES_TAKEN}"))
        is_claim = any(warning.startswith(REPORTED) for warning in warnings)
        provenance = verdict.provenance if is_claim else "recomputed"
        yield replace(verdict, warnings=warnings, scores_compared=True, provenance=provenance)


def _asked_again(
    verdict: Verdict, opened: Callable[[str], Backend], backend: str | None, datasets: Path, n: int, seed: int
) -> Verdict:
    """Return a verdict, that of an accepted result after the model was asked some items again."""
    if verdict.reason is not None:
        return verdict
    result = read_result(Path(verdict.place))
    model = opened(backend or result.model.backend)
    found, others = repeat(Path(verdict.place) / RESULT, model, datasets, n, seed=seed)
    agreement = f"{found.n_agreeing} of {found.n_items} items asked again (seed {seed}) agree"
    lack = why_insufficient(found, result)
    print(f"{printable(verdict.place)}: {'; '.join(filter(None, (agreement, lack)))}", file=sys.stderr)
    theirs, ours = (one.precision or "an unknown precision" for one in (result.model, model.model))
    if theirs != ours:
        # What rounds otherwise forgives more than the precision of the result does.
        warning = (
            f"{agreement} in {ours}, which vouches for nothing: the result is in {theirs}; open it so with --dtype"
        )
        return replace(verdict, warnings=(*verdict.warnings, warning))
    if others:
        warning = f"{agreement}; others are {', '.join(others[:3])}"
        return replace(verdict, rerun=found, warnings=(*verdict.warnings, warning))
    is_sound = verdict.provenance != "reported" and is_reproduced(found, result)
    return replace(verdict, rerun=found, provenance="reproduced" if is_sound else verdict.provenance)


def _line(verdict: Verdict) -> str:
    reason = verdict.reason or "; ".join((*verdict.warnings, *verdict.likenesses))
    line = f"{verdict.state}: {printable(verdict.place)}"
    return f"{line}: {printable(reason, most=2_000)}" if reason else line


def _annotation(verdict: Verdict) -> str:
    level = {"rejected": "error", "accepted with warnings": "warning", "accepted": "notice"}[verdict.state]
    # Other changes of a pull request are named by their own path.
    path = f"{verdict.place}/{RESULT}" if os.path.lexists(f"{verdict.place}/{RESULT}") else verdict.place
    return github_annotation(level, file=printable(path), title=verdict.state, text=_line(verdict))
