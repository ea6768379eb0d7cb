"""``python -m leaderboard verify``: results are compared with their datasets, and every number is computed again."""

from __future__ import annotations

import os
import secrets
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.memory import Memory, machine_memory
from biasboard.ground.options import with_options
from biasboard.ground.plain_text import github_annotation, printable
from biasboard.ground.progress import steps
from evaluators.backend import Backend, open_backend
from evaluators.backend_options import BackendOptions
from evaluators.scorer import open_scorers
from leaderboard.benchmark_pages import check_plug_ins
from leaderboard.commands.results_option import accepted_results
from leaderboard.commands.shared_options import DATASETS, RESULTS_HELP, DatasetsFolder, KeysFolder
from leaderboard.verify.board_files import keys_folder
from leaderboard.verify.comparisons import CompleteRuns, compare_scores
from leaderboard.verify.comparisons import rerun as repeat
from leaderboard.verify.entries import is_reproduced
from leaderboard.verify.keys import KeyBook, open_book
from leaderboard.verify.submissions import read_register, why_not_owner
from leaderboard.verify.verdicts import REPORTED, UNCOMPARED, Verdict, judge
from schemas.documents.board import Register
from schemas.folders.run_folder import RESULT, read_result
from schemas.outputs.documents import VerdictOnResult, Verdicts
from schemas.printed import Outcome, as_json, with_format

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
    results: Annotated[
        list[str] | None,
        typer.Option(help=f"Accepted results to compare with, whose register names owners: {RESULTS_HELP}"),
    ] = None,
    since: Annotated[
        Path | None,
        typer.Option(
            help="Earlier state of the folder, or of a whole git checkout: verify only the results that changed, and "
            "reject every other change."
        ),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="File for the verdicts as JSON, besides what is printed.")] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Recompute every result, even one that this machine has verified before.")
    ] = False,
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
) -> Outcome:
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
        verdicts = _judged(path, book, memory, since, accepted)
        if author is not None:
            register = read_register(accepted)
            verdicts = [
                verdict
                if verdict.belongs is None or (why := why_not_owner(register, verdict.belongs, author)) is None
                else replace(verdict, reason=why)
                for verdict in verdicts
            ]
        if texts is not None:
            verdicts = list(compared(verdicts, CompleteRuns(texts, book, memory)))
        verdicts = list(known_to_follow(verdicts, read_register(accepted)))
        if scores:
            verdicts = list(scored_again(verdicts, seed if seed is not None else secrets.randbits(32)))
        if rerun is not None:
            again = Again(model, backend, options, datasets, rerun, seed if seed is not None else secrets.randbits(32))
            verdicts = list(rerun_of(verdicts, again))
        if output == "github":
            verdicts = [replace(verdict, likenesses=()) for verdict in verdicts]
        document = verdicts_document(verdicts)
        if report is not None:
            report.write_text(as_json(document), encoding="ascii")
        _print(verdicts, output)
        return Outcome(document, _status(verdicts))


def _judged(paths: Sequence[Path], book: KeyBook, memory: Memory, since: Path | None, results: Path) -> list[Verdict]:
    with steps("verifying results") as step:

        def advance(n_done: int, n: int) -> None:
            step("verifying results", n_done, n)

        return list(judge(paths, book, memory, since=since, against=results, advance=advance))


def _status(verdicts: Sequence[Verdict]) -> int:
    states = {verdict.state for verdict in verdicts}
    if "rejected" in states:
        return EXIT_REJECTED
    return EXIT_WARNED if "accepted with warnings" in states else EXIT_ACCEPTED


def compared(verdicts: Sequence[Verdict], complete: CompleteRuns) -> Iterator[Verdict]:
    """Yield the verdicts, those of results without texts after a comparison with their complete runs."""
    found = complete.problems([Path(verdict.place) for verdict in verdicts if _lacks_texts(verdict)])
    for verdict in verdicts:
        if not _lacks_texts(verdict):
            yield verdict
        elif (problem := next(found)) is not None:
            yield replace(verdict, reason=problem)
        else:
            yield replace(_without_warning(verdict), texts_compared=True)


def _lacks_texts(verdict: Verdict) -> bool:
    return verdict.reason is None and UNCOMPARED in verdict.warnings


def _without_warning(verdict: Verdict) -> Verdict:
    return replace(verdict, warnings=tuple(warning for warning in verdict.warnings if warning != UNCOMPARED))


def known_to_follow(verdicts: Sequence[Verdict], register: Register) -> Iterator[Verdict]:
    """Yield the verdicts, without a warning about texts where a maintainer has compared exactly this result before."""
    compared_before = {one.result_sha256 for one in register.results if one.texts_compared is not None}
    for verdict in verdicts:
        yield _without_warning(verdict) if verdict.result_sha256 in compared_before else verdict


def scored_again(verdicts: Sequence[Verdict], seed: int) -> Iterator[Verdict]:
    """Yield the verdicts, those of results whose scores were taken as stored after some texts were scored again.

    Args:
        verdicts: The verdicts so far.
        seed: Seed of the draw of the texts.
    """
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
        warnings = tuple(warning for warning in verdict.warnings if not warning.startswith(REPORTED))
        yield replace(verdict, warnings=warnings, scores_compared=True, provenance="recomputed")


class Again(NamedTuple):
    """A model that is asked again, and how many items."""

    model: str | None
    backend: str | None
    options: BackendOptions
    datasets: Path
    n: int
    seed: int


def rerun_of(verdicts: Sequence[Verdict], again: Again) -> Iterator[Verdict]:
    """Yield the verdicts, those of accepted results with a comparison of some answers.

    Raises:
        ConfigError: no model is named, it cannot be opened, or it is not that of a result.
        RunError: the model cannot be asked.
    """
    if again.model is None:
        raise ConfigError("--rerun asks a model again; name it with --model")
    opened: dict[str, Backend] = {}
    for verdict in verdicts:
        if verdict.reason is not None:
            yield verdict
            continue
        path = Path(verdict.place) / RESULT
        name = again.backend or read_result(path.parent).model.backend
        if name not in opened:
            opened[name] = open_backend(name, again.model, again.options)
        found = repeat(path, opened[name], again.datasets, again.n, seed=again.seed)
        agreement = f"{found.rerun.n_agreeing} of {found.rerun.n_items} items asked again (seed {again.seed}) agree"
        print(f"{printable(verdict.place)}: {agreement}", file=sys.stderr)
        if found.differing:
            differing = f"{agreement}; others are {', '.join(found.differing[:3])}"
            yield replace(verdict, rerun=found.rerun, warnings=(*verdict.warnings, differing))
        else:
            is_enough = is_reproduced(found.rerun, read_result(path.parent))
            yield replace(verdict, rerun=found.rerun, provenance="reproduced" if is_enough else verdict.provenance)


def _print(verdicts: Sequence[Verdict], output: str) -> None:
    for verdict in verdicts:
        print(_annotation(verdict) if output == "github" else _line(verdict))
    if output == "text" and len(verdicts) > 1:
        states = Counter(verdict.state for verdict in verdicts)
        print(", ".join(f"{n} {state}" for state, n in sorted(states.items())))


def verdicts_document(verdicts: Sequence[Verdict]) -> Verdicts:
    """Return verdicts as the document that the command prints, and that a report holds."""
    values = ({each.name: getattr(verdict, each.name) for each in fields(verdict)} for verdict in verdicts)
    return Verdicts(
        verdicts=tuple(
            VerdictOnResult(state=verdict.state, **value) for verdict, value in zip(verdicts, values, strict=True)
        )
    )


def _line(verdict: Verdict) -> str:
    reason = verdict.reason or "; ".join((*verdict.warnings, *verdict.likenesses))
    line = f"{verdict.state}: {printable(verdict.place)}"
    return f"{line}: {printable(reason, most=2_000)}" if reason else line


def _annotation(verdict: Verdict) -> str:
    level = {"rejected": "error", "accepted with warnings": "warning", "accepted": "notice"}[verdict.state]
    # Other changes of a pull request are named by their own path.
    path = f"{verdict.place}/{RESULT}" if os.path.lexists(f"{verdict.place}/{RESULT}") else verdict.place
    return github_annotation(level, file=printable(path), title=verdict.state, text=_line(verdict))
