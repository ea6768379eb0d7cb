"""``biasboard score MODEL``: every benchmark with its usual prompts, in one command, and one table at the end.

It does in turn what ``build``, ``run`` and ``board`` do apart: it builds the datasets that are missing, opens the model
once, finds out which prompts fit it, asks what no earlier run has asked, and compares the results with the accepted
ones of the same datasets.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from biasboard.building import build_if_missing
from biasboard.gate import EARLIER, SEVERAL, GateChoice, Limit, check_asked, limits_of, outcome_lines, outcomes
from biasboard.ground.command_line import ANSWERS_KEPT, EXIT_GATE, one_line_errors
from biasboard.ground.errors import ConfigError, DataError, RunError
from biasboard.ground.memory import machine_memory
from biasboard.ground.options import names_in, option, with_options
from biasboard.ground.plain_text import listed
from biasboard.ground.progress import note, working
from builders.description import DATASETS_FOLDER, Builder, BuilderSource, all_builders
from evaluators.backend import Backend, open_backend, open_outline
from evaluators.backend_options import MODEL_PANEL, BackendOptions
from evaluators.benchmark import load_benchmark
from evaluators.runs.ask.study import Plans, Study, scorers_of
from evaluators.runs.plan.estimate import estimates_document, print_estimates
from evaluators.runs.plan.plan import prompts_of_runs, runs_of_prompt
from leaderboard.commands.shared_options import BY_DEFAULT, RESULTS_HELP
from leaderboard.verify.board_files import KEYS, accepted_results, keys_folder
from schemas.documents.dataset import Manifest
from schemas.documents.model_summary import ModelSummary
from schemas.folders.dataset_folder import MANIFEST, read_manifest
from schemas.folders.run_folder import read_result
from schemas.outputs.documents import Printed, RunEstimates, with_format

if TYPE_CHECKING:
    import pandas as pd

    from evaluators.runs.ask.pipeline import Finished
    from leaderboard.verify.entries import Root
    from schemas.documents.record import Record
    from schemas.documents.result import Result

_QUICK_ITEMS = 24
"""Number of items per config with ``--quick``: two sets of eleven, or twelve pairs."""
_ESTIMATED_ITEMS = 64
"""Number of items per config from which ``--dry-run`` estimates."""
_FILES = "Files"
_MOST_FOLDERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreChoice:
    """What is scored, and where files lie."""

    backend: str | None = option(
        "Backend that calls the model; by default openai with --base-url, and transformers without.", panel=MODEL_PANEL
    )
    benchmarks: tuple[str, ...] | None = option(
        "Benchmarks, separated by commas, or datasets of yours by their names in --datasets; by default all benchmarks "
        "that need no data of yours.",
        read=names_in,
    )
    prompts: tuple[str, ...] = option(
        "Prompt or protocol for the configs that have it, or CONFIG=PROMPT; by default the first that fits the model. "
        "Repeatable.",
        flag="--prompt",
        default=(),
    )
    quick: bool | None = option("Ask a few items of each config: a look in minutes, which gives no rank.")
    against: str | None = option(
        "Id of a model on the board, or of a run of yours, to compare with; its prompts are preferred."
    )
    out: Path = option("Folder of all runs.", panel=_FILES, default=Path("out/runs"))
    datasets: Path = option(
        "Folder of built datasets; missing ones are built there.", panel=_FILES, default=DATASETS_FOLDER
    )
    results: str | None = option(f"Accepted results to compare with: {RESULTS_HELP}", panel=_FILES)
    keys: Path | None = option(f"Folder of answer keys. Default: {KEYS} {BY_DEFAULT}", panel=_FILES)


@dataclass(frozen=True, slots=True)
class Score:
    """The outcome of scoring a model."""

    report: ModelSummary
    """The headline measures, as the published schema ``model_summary`` describes them."""
    runs: tuple[Finished, ...]
    """The finished runs, each with its ``folder`` and ``result``."""
    told: tuple[str, ...] = ()
    """Notes of the report that were printed before the first request."""

    def summary(self) -> str:
        """Return the table that the command prints."""
        from leaderboard.pages.summary_forms import summary_lines

        return "\n".join(summary_lines(self.report))

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one row for each measure; unknown values are missing.

        Its columns are the model, benchmark, dataset and its version, protocol, config and measure; the ``value``, its
        95 % interval from ``low`` to ``high``, the ideal, a useless predictor with its value, the value with missing
        answers ``at_worst``, ``n`` and the ``reason`` for no value; whether the dataset was asked as a whole, and how
        many items had no score; ``rank_best`` and ``rank_worst`` or ``why_unranked``; and, beside another model
        (``against``), its value, by how much this one is nearer to the ideal (``lead`` with interval), and what that
        says (``outcome``).
        """
        from leaderboard.pages.summary_forms import frame

        return frame(self.report)

    def items(self) -> pd.DataFrame:
        """Return a data frame with one row for each item of all runs: what was right, what was read, and the groups.

        Its columns are the model, dataset, config, prompt, split, item, the first text that was sent as ``question``,
        cluster, status and reason, the right answer as ``target``, what was read of the answers as ``reading`` (a
        list), the texts of the answers as ``text``, with a line of three dashes between them, the most likely option as
        ``choice`` (missing where several are) and its ``probability``, and for questions with options whether it is
        right as ``correct``, whose mean is the accuracy (a half where two are as likely, such as of answers that change
        with the order of the options), and a column ``group_NAME`` for each group.
        """
        import pandas as pd

        from schemas.folders.run_folder import StoredParts

        rows = [
            _item_row(finished.result, record)
            for finished in self.runs
            for records in StoredParts(finished.folder, finished.result)
            for record in records
        ]
        return pd.DataFrame(rows)

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        from leaderboard.pages.summary_forms import markdown

        return markdown(self.report)

    def card(self, folder: str | os.PathLike[str] = "out/cards") -> list[Path]:
        """Write what goes into a model card into a folder of the model, and return the files, the Markdown first.

        Raises:
            MissingExtraError: the extra ``site`` is not installed.
        """
        from leaderboard.pages.model_cards import write_card

        return write_card(self.report, Path(folder))

    def __str__(self) -> str:
        """Return the table that the command prints."""
        return self.summary()


def _item_row(result: Result, record: Record) -> dict[str, object]:
    reading, signature = record.reading, result.signature
    # Imported here, because planning needs none of it.
    from evaluators.statistics.option_scores import likeliest

    choices = likeliest(reading) if reading else ()
    texts = [exchange.text for exchange in record.exchanges if exchange.text is not None]
    return {
        "model": result.model.id,
        "dataset": signature.dataset,
        "config": record.config,
        "prompt": signature.prompt,
        "split": record.split,
        "item": record.item_id,
        "question": next((exchange.prompt for exchange in record.exchanges), None),
        "cluster": record.cluster,
        "status": record.status,
        "reason": record.reason,
        "target": record.target,
        "reading": None if reading is None else list(reading.answers),
        "text": "\n---\n".join(texts) if texts else None,
        "choice": choices[0] if len(choices) == 1 else None,
        "probability": max(reading.probabilities, default=None) if reading else None,
        "correct": choices.count(record.target) / len(choices) if choices and record.target else None,
        **{f"group_{name}": value for name, value in record.groups.items()},
    }


@one_line_errors(ANSWERS_KEPT)
@with_format(ModelSummary, RunEstimates)
@with_options
def score_command(
    model: Annotated[str, typer.Argument(help="Hub id or folder of the model, or its name at an endpoint.")],
    choice: ScoreChoice,
    gates: GateChoice,
    options: BackendOptions,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Build missing datasets, and print prompts, requests, tokens, hours and price; ask no item.",
        ),
    ] = False,
) -> Printed | RunEstimates:
    """Score a model on every benchmark with the prompts that fit it, and compare it with the board."""
    if dry_run:
        _limits(choice, gates)
        with redirect_stdout(sys.stderr):
            planned = plans_of(model, choice, options, outline=True)
            estimates = planned.estimate(root=choice.out, probed=True)
        # Its answers are earlier ones to a gate, which an endpoint's name alone tells apart.
        name = ", with a --name of its own if a gate is to follow," if options.base_url else ""
        print_estimates(estimates, planned.notes, pilot=f"--quick{name}")
        if gates != GateChoice():
            pilot = "; a pilot needs a --name of its own, since earlier answers of an endpoint decide no gate"
            print(f"gates are decided by what a model answers: leave out --dry-run{pilot if options.base_url else ''}")
        return estimates_document(estimates, planned.notes)
    # Imported here, because planning needs none of it.
    from evaluators.runs.measure.recording import order_lines, refusal_lines
    from leaderboard.pages.summary_forms import summary_lines

    # What single runs print is no part of the table.
    with redirect_stdout(sys.stderr):
        scored = score_model(model, choice, options, gates)
    report = scored.report
    new = tuple(line for line in report.notes if line not in scored.told)
    runs = [(run.folder, run.result) for run in scored.runs]
    of_answers = [*order_lines(runs), *refusal_lines(runs), *_cost(scored.runs)]
    lines = [*summary_lines(replace(report, notes=new)), *of_answers]
    print("\n".join([*lines, *_next(choice, report, is_remote=options.base_url is not None)]))
    if report.gates:
        print("\n".join(outcome_lines(report.gates)), file=sys.stderr)
    if report.passed is not False:
        return Printed(report, error=_none_read(scored.runs))
    return Printed(report, EXIT_GATE)


def _cost(finished: Sequence[Finished]) -> Iterator[str]:
    """Yield what the answers cost, where the prices are known."""
    if costs := [cost for run in finished if (cost := run.result.usage.cost_usd) is not None]:
        yield f"the answers cost US$ {sum(costs):.4f} by the prices given, those of earlier calls included"


def _none_read(finished: Sequence[Finished]) -> RunError | None:
    """Return an error if no answer at all could be read, and say so of single runs: the others are no less complete."""
    # Imported here, because planning needs none of it.
    from evaluators.runs.measure.recording import check_read, is_unreadable

    unreadable = [run for run in finished if is_unreadable(run.result)]
    try:
        check_read([run[:3] for run in unreadable])
    except RunError as error:
        if len(unreadable) == len(finished):
            return error
        note(f"warning: {error}")
    return None


def score_model(model: str, choice: ScoreChoice, options: BackendOptions, gates: GateChoice) -> Score:
    """Score a model on the chosen benchmarks, and decide the gates.

    Raises:
        ConfigError: an option cannot be used, or no benchmark can be asked; nothing was asked.
        RunError: a run ended early; its answers are kept, and the same call continues.
    """
    limits = _limits(choice, gates)  # Wrong ones are told before anything is built or opened.
    planned = plans_of(model, choice, options)
    for line in planned.notes:
        note(line)
    asked = {} if gates == GateChoice() else _measures_of(planned)
    check_asked(limits, gates, _benchmarks(choice), asked)
    if asked and not gates.allows(EARLIER):
        _check_new(planned, choice)
    compared = _Compared(None, is_same=False) if choice.against is None else _compared(planned, choice)
    if compared.why_not is not None:
        if gates.max_worse and not compared.is_same:
            raise ConfigError(compared.why_not)
        note(f"warning: {compared.why_not}")
    if (split := _split_name(planned, choice)) is not None:
        note(f"warning: {split}")
    try:
        asking = planned.ask(
            root=choice.out, scorers=scorers_of((plan.task for plan in planned.plans), None), together=True
        )
        finished = tuple(asking)
    except (RunError, KeyboardInterrupt):
        if asked and planned.backend.is_remote and not gates.allows(EARLIER):
            note(
                "to go on under a gate, add --allow earlier to the same command if the endpoint still serves this "
                "model, or give a new --name and ask all again"
            )
        raise
    named: dict[str, list[str]] = {}
    for limit in limits:
        named.setdefault(limit.benchmark, []).append(limit.measure)
    report = _report(choice, planned.backend, finished, named)
    doubts = _doubts(planned.backend, finished)
    same_as = _against(choice) if compared.is_same else None
    decided = tuple(outcomes(report, limits, gates, [*asked], doubts=doubts, same_as=same_as))
    # A gate says so itself.
    notes = [*report.notes, *planned.notes, *(() if decided else doubts.values())]
    report = replace(
        report,
        notes=tuple(notes),
        gates=decided,
        passed=all(gate.passed for gate in decided) if decided else None,
        allowed=tuple(gates.allow or ()),
        is_by_point=bool(gates.point),
    )
    return Score(report, finished, planned.notes)


def _limits(choice: ScoreChoice, gates: GateChoice) -> list[Limit]:
    if gates.max_worse and choice.against is None:
        raise ConfigError("--max-worse: than what? Name the last release with --against")
    return limits_of(gates, _benchmarks(choice))


def _benchmarks(choice: ScoreChoice) -> list[str]:
    return [one.benchmark for one in _chosen(choice)]


def _measures_of(planned: Plans) -> dict[str, set[str]]:
    """Return the names of the measures of each benchmark that is asked: those of its tasks, and its headlines."""
    # Imported here, because a score without gates needs none of it.
    from evaluators.runs.measure.measuring import metric_definitions
    from leaderboard.benchmark_pages import load_pages

    measures: dict[str, set[str]] = {}
    for plan in planned.plans:
        benchmark = plan.selection.manifest.benchmark
        of_task = {one.name for one in metric_definitions(plan.task.name)}
        headlines = {one.name for one in load_pages(benchmark).headlines}
        measures.setdefault(benchmark, set()).update(of_task | headlines)
    return measures


def _check_new(planned: Plans, choice: ScoreChoice) -> None:
    """Refuse, before anything is paid for, an endpoint of which answers are stored: they would decide no gate.

    Raises:
        ConfigError: there are such answers.
    """
    if not planned.backend.is_remote or not _has_runs(choice, planned.backend.model.id):
        return
    estimates = planned.estimate(root=choice.out, probed=True)
    if n_answered := sum(one.n_answered or 0 for one in estimates):
        n = sum(one.n_distinct_requests for one in estimates)
        raise ConfigError(
            f"{n_answered:,} of {n:,} answers are stored from earlier calls, and the endpoint may serve another model "
            "by now, so that no gate could be decided; give a new --name or a new folder for --out, or add --allow "
            "earlier if it is the same model"
        )


def _has_runs(choice: ScoreChoice, model_id: str) -> bool:
    # Imported here, because local models need none of it.
    from leaderboard.commands.comparable_results import model_folders

    return model_id.replace("/", "__") in model_folders(choice.out)


def _doubts(backend: Backend, finished: Sequence[Finished]) -> dict[str, str]:
    """Return why answers may be of several models, as only local weights are sure to be the same, by what allows it.

    An endpoint may serve another model than when it gave the answers of earlier calls, or say itself that it did.
    """
    if not backend.is_remote:
        return {}
    n_earlier, n = sum(run.n_earlier for run in finished), sum(run.result.usage.n_requests for run in finished)
    # Imported here, because planning needs none of it.
    from leaderboard.pages.model_summary import several_answered

    told = {}
    if n_earlier:
        told[EARLIER] = (
            f"{n_earlier:,} of {n:,} answers are from earlier calls, and the endpoint may serve another model by now"
        )
    if (several := several_answered(run.result for run in finished)) is not None:
        told[SEVERAL] = several
    return told


def plans_of(model: str, choice: ScoreChoice, options: BackendOptions, *, outline: bool = False) -> Plans:
    """Plan what is asked of a model; nothing is asked of it.

    An endpoint is probed with a few test calls, because the prompts depend on what it can do.

    Args:
        model: The model.
        choice: The user's choices.
        options: The options of the backend.
        outline: True for estimates: to read only some items, where no answers are stored, and of a local model only the
            tokenizer.
    """
    against = _against(choice)
    # Only an endpoint's name says whose answers are stored: an outline of local weights has no hash of them.
    is_known = options.base_url is not None and _has_runs(choice, options.name or model)
    study = Study(
        datasets=tuple(_dataset_folders(choice)),
        prompts=choice.prompts,
        limit=_QUICK_ITEMS if choice.quick else None,
        measured_only=bool(choice.quick),
        n_sampled=_ESTIMATED_ITEMS if outline and not is_known else None,
    )
    _ = study.configs_to_ask  # Wrong names are told before a model is opened.
    backend_name = choice.backend or options.usual_backend
    with working(f"opening {options.name or model}"):
        backend = (open_outline if outline else open_backend)(backend_name, model, options)
    # Of a remote one this would take a test call, and it is never a baseline.
    if not backend.is_remote and backend.model.endpoint == "baseline":
        raise ConfigError(f"{backend.model.id} is no model: the board computes every baseline itself; give a model")
    with accepted_results(choice.results) as results:

        def by_others(manifest: Manifest, config: str) -> Mapping[str, frozenset[str]]:
            # Results of other prompts are not compared with theirs.
            others = {"models on the board were": prompts_of_runs(results, manifest, config)}
            if against is None:
                return others
            runs = (prompts_of_runs(root, manifest, config, against) for root in (choice.out, results))
            return {f"{against} was": frozenset[str]().union(*runs), **others}

        planned = study.plans(backend, skip=True, preferred=by_others)
    if not planned.plans:
        raise ConfigError(f"nothing can be asked: {'; '.join(planned.notes)}")
    return planned


def _against(choice: ScoreChoice) -> str | None:
    """Return the id of the model to compare with, of which there are results; None if there is none."""
    from leaderboard.commands.comparable_results import known_model, model_ids

    if choice.against is None:
        return None
    with _results(choice) as roots, accepted_results(choice.results) as accepted:
        own, have = model_ids([root.folder for root in roots]), model_ids([accepted])
    if choice.quick:
        short = choice.against.casefold().rpartition("/")[2]
        if any(short in one.casefold() for one in have) and not any(short in one.casefold() for one in own):
            raise ConfigError(
                f"--against {choice.against}: the board has its answers to all items, with which the few of --quick "
                "are not compared; leave out --quick, or score it with --quick first"
            )
    return known_model("--against", choice.against, own)


def _split_name(planned: Plans, choice: ScoreChoice) -> str | None:
    """Return that other models have runs under this name, and in which folders; None if none has."""
    # Imported here, because planning needs none of it.
    from leaderboard.verify.entries import label_of

    own, others = planned.backend.model, list[Path]()
    for run in sorted(choice.out.glob(f"*/{own.id.replace('/', '__')}/*")):
        result = _result_in(run)
        if result is None or result.model.identity_sha256 == own.identity_sha256:
            continue
        # Those of another revision or precision are told apart by it.
        if label_of(result.model) == label_of(own):
            others.append(run)
    if not others:
        return None
    folders = listed([*map(str, others)], most=_MOST_FOLDERS)
    return (
        f"under the name {own.id} there are runs of other weights, settings or addresses, so that neither a card nor "
        f"--against can tell which model is meant: stop, and give another --name, or remove {folders}"
    )


class _Compared(NamedTuple):
    """Whether a model can be compared with another."""

    why_not: str | None
    """Why it cannot; None if it can."""
    is_same: bool
    """True if both are the same weights and settings."""


def _compared(planned: Plans, choice: ScoreChoice) -> _Compared:
    """Return whether a plan asks what the model to compare with was asked, of the same items."""
    against, own = _against(choice) or "", dict.fromkeys(plan.prompt.id for plan in planned.plans)
    theirs, found = set[str](), dict[str, set[str]]()
    with _results(choice) as roots:
        for plan in planned.plans:
            signature, config = plan.signature, plan.selection.config
            for root in roots:
                theirs |= prompts_of_runs(root.folder, plan.selection.manifest, config, against)
                for result in map(_result_in, runs_of_prompt(root.folder, signature, against, config)):
                    if result is not None and result.signature_sha256 == signature.sha256():
                        found.setdefault(root.origin, set()).add(result.model.identity_sha256)
    own_identity = planned.backend.model.identity_sha256
    if not planned.backend.is_remote and set[str]().union(*found.values()) == {own_identity}:
        same = f"--against {choice.against}: has the same weights and settings, by their hashes: nothing can be worse"
        return _Compared(same, is_same=True)
    if found:
        # Of accepted ones, the first counts.
        several = [] if "accepted" in found else next(iter(found.values()))
        if len(several) < 2:
            return _Compared(None, is_same=False)
        return _not_comparable(
            f"--against {choice.against}: {len(several)} models of other weights or settings are stored as {against} "
            f"in {choice.out}; score each release with a --name of its own, or remove the runs of one"
        )
    if shared := sorted(theirs & own.keys()):
        remedy = "leave out --quick" if choice.quick else f"score {against} again"
        return _not_comparable(
            f"--against {choice.against}: with {', '.join(shared)} it answered other items or versions than this model "
            f"is asked here, so that they cannot be compared; {remedy}"
        )
    was = f"was asked with {', '.join(sorted(theirs))}" if theirs else "was not asked on these versions of the datasets"
    return _not_comparable(
        f"--against {choice.against}: {was}, and this model would be with {', '.join(own)}, so that they cannot be "
        f"compared; score {against} with --prompt {' --prompt '.join(own)} first, if it can be asked so"
    )


def _not_comparable(why_not: str) -> _Compared:
    return _Compared(why_not, is_same=False)


def _result_in(run: Path) -> Result | None:
    try:
        return read_result(run)
    except DataError:
        return None  # It was not finished, or is told where results are loaded.


@contextmanager
def _results(choice: ScoreChoice) -> Iterator[tuple[Root, ...]]:
    """Yield the folders of results to compare with.

    Accepted results answer all items, so that they are not compared with those of a few.
    """
    from leaderboard.verify.entries import Root

    own = Root(choice.out, "local")
    if choice.quick:
        yield (own,)
        return
    with accepted_results(choice.results) as accepted:
        yield Root(accepted, "accepted"), own


class _Chosen(NamedTuple):
    """A dataset to ask."""

    benchmark: str
    folder: Path
    made_by: tuple[Builder, BuilderSource] | None
    """What builds it; None for one of the user's, which is there."""


def _dataset_folders(choice: ScoreChoice) -> list[Path]:
    """Return the folders of the datasets of the chosen benchmarks, after building those that are missing."""
    chosen = _chosen(choice)
    for _, folder, made_by in chosen:
        if made_by is not None:
            with working(f"building {folder}"):
                build_if_missing(*made_by, folder)
        manifest = read_manifest(folder)
        name = f"{manifest.name}@{manifest.version}"
        if (reason := load_benchmark(manifest.benchmark).retired.get(name)) is not None:
            again = "" if made_by is None else f": biasboard build {made_by[0].name} --out {folder} --overwrite"
            raise ConfigError(f"{folder}: version {manifest.version} is retired: {reason}; build it again{again}")
    return [one.folder for one in chosen]


def _chosen(choice: ScoreChoice) -> list[_Chosen]:
    """Return the datasets to ask: that of each benchmark which needs no input, or the named ones.

    Raises:
        ConfigError: a name is none of such a benchmark nor of a built dataset, or two datasets are of one benchmark.
    """
    if (choice.datasets / MANIFEST).is_file():
        raise ConfigError(f"--datasets {choice.datasets}: is a dataset; give the folder that it lies in")
    chosen = {
        builder.name: _Chosen(builder.name, choice.datasets / source.dataset, (builder, source))
        for builder in all_builders()
        for source in [next((one for one in builder.sources if one.input is None), None)]
        if source is not None
    }
    if choice.benchmarks is None:
        return [*chosen.values()]
    own = {path.parent.name: path.parent for path in sorted(choice.datasets.glob(f"*/{MANIFEST}"))}
    for name in own.keys() - chosen.keys():
        chosen[name] = _Chosen(read_manifest(own[name]).benchmark, own[name], None)
    wanted = [*dict.fromkeys(choice.benchmarks)]
    for name in wanted:
        if name not in chosen:
            near = get_close_matches(name, chosen, n=1)
            have = f"{', '.join(chosen)}{f'; did you mean {near[0]}?' if near else ''}"
            raise ConfigError(
                f"--benchmarks {name}: no such benchmark, nor a dataset in {choice.datasets}, where biasboard build "
                f"puts those of your data; have: {have}"
            )
    for benchmark, n in Counter(chosen[name].benchmark for name in wanted).items():
        if n > 1:
            names = " and ".join(name for name in wanted if chosen[name].benchmark == benchmark)
            raise ConfigError(f"--benchmarks: {names} are datasets of {benchmark}; score one of them at a time")
    return [chosen[name] for name in wanted]


def _report(
    choice: ScoreChoice, backend: Backend, finished: Sequence[Finished], also: Mapping[str, Sequence[str]]
) -> ModelSummary:
    """Compare finished runs with all results on the same datasets, and summarise the model."""
    # Imported here, because planning needs none of it.
    from leaderboard.commands.comparable_results import load_comparable
    from leaderboard.pages.model_summary import summarise, with_missing_of_groups
    from leaderboard.verify.keys import open_book

    memory, against = machine_memory(), _against(choice)
    own = {each.folder.relative_to(choice.out).as_posix() for each in finished}
    keys = open_book(choice.keys or keys_folder(), choice.datasets)
    with _results(choice) as roots:
        # What was just asked stands for the model, also where the board has accepted results of the same weights.
        board, _ = load_comparable(
            roots, keys, memory, lambda root, place: root.origin == "local" and place in own, against
        )
    summary = summarise(board, backend.model, against=against, also=also)
    return with_missing_of_groups(summary, ((run.folder, run.result) for run in finished))


def _next(choice: ScoreChoice, report: ModelSummary, *, is_remote: bool) -> Iterator[str]:
    """Yield where the files are, and what can be done with them."""
    if choice.quick and not report.is_whole:
        gate = "; a gate needs another --name, since earlier answers of an endpoint decide none" if is_remote else ""
        yield f"no rank: only some items were asked; leave out --quick for all, the answers are kept{gate}"
    elif parts := [one for one in report.benchmarks if not one.is_whole]:
        yield (
            f"no rank: the dataset of {' and of '.join(one.benchmark for one in parts)} in {choice.datasets} is a part "
            f"of the whole; build it again: biasboard build {parts[0].benchmark} --out "
            f"{choice.datasets / parts[0].dataset} --overwrite"
        )
    yield (
        f"the runs are in {choice.out}; biasboard board --runs {choice.out} shows them, and "
        f"biasboard card {choice.out} --model {report.model} writes what a model card needs"
    )
