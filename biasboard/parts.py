"""``biasboard new`` and ``biasboard check``: a part of a plug-in, from the shortest that works to a written result."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from string import Template
from types import ModuleType
from typing import Annotated, Any, Literal, get_args

import typer
from typing_extensions import override

from biasboard.building import build_if_missing, builder_application
from biasboard.ground.command_line import call, one_line_errors
from biasboard.ground.errors import BiasboardError, ConfigError, DataError, RunError
from biasboard.ground.kinds import BACKENDS, BENCHMARKS, BUILDERS, CALIBRATIONS, METRICS, PAGES, SHAPES, TASKS
from biasboard.ground.options import Only, with_options
from biasboard.ground.plugins import PACKAGES, VARIABLE, PlugIns, added_folders
from biasboard.ground.progress import working
from builders.description import DATASETS_FOLDER, all_builders
from evaluators.backend import (
    Backend,
    Capability,
    ChoiceRequest,
    GenerateRequest,
    Request,
    Response,
    Runtime,
    identified_model,
    open_backend,
)
from evaluators.backend_options import BackendOptions
from evaluators.benchmark import load_benchmark
from evaluators.commands.runs_from_options import value_and_interval
from evaluators.metric import MetricDefinition
from evaluators.runs.ask.pipeline import Finished
from evaluators.runs.ask.study import Study
from evaluators.runs.measure.measuring import definitions_in, metric_definitions
from evaluators.runs.measure.rescoring import rescore
from evaluators.runs.plan.plan import shape_listed
from evaluators.task import load_task, tasks_for
from leaderboard.benchmark_pages import check_plug_ins
from schemas.documents.dataset import shape_of
from schemas.folders.dataset_folder import MANIFEST, read_manifest
from schemas.folders.run_folder import read_run

Kind = Literal["metric", "task", "backend", "calibration", "benchmark"]
_TEMPLATES = Path(__file__).with_name("templates")
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_KINDS = (METRICS, TASKS, BENCHMARKS, CALIBRATIONS, BACKENDS, PAGES, SHAPES, BUILDERS)
_FEW = 24
"""Number of items of each config that are asked: two sets of eleven, or twelve pairs."""
_MOST_SHOWN = 8
"""Largest number of measures that are printed of a run."""
_N_WORDS = 12


@one_line_errors()
def new(
    kind: Annotated[Kind, typer.Argument(help=f"{', '.join(get_args(Kind))}.")],
    name: Annotated[str, typer.Argument(help="Name of the part: small letters, digits and single underscores.")],
    out: Annotated[Path, typer.Option(help="Folder of your plug-ins; . for a part of the repository.")] = Path("mine"),
    task: Annotated[str | None, typer.Option(help="Of a metric: the task whose answers it reads.")] = None,
    shape: Annotated[str | None, typer.Option(help="Of a task: the shape of the items that it asks about.")] = None,
) -> None:
    """Write the shortest part that works, with its test, to be changed into yours."""
    roots = os.environ.get(VARIABLE, "").split(os.pathsep)
    if not out.is_dir() and str(out) in roots:
        # It is made below.
        os.environ[VARIABLE] = os.pathsep.join(root for root in roots if root != str(out))
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name}: give a name of small letters, digits and single underscores, such as first_mention")
    words = {
        "name": name,
        "NAME": name.upper(),
        "Class": name.title().replace("_", ""),
        "dataset": name.replace("_", "-"),
    }
    words |= _named("task", task, TASKS, is_needed=kind == "metric")
    words |= _named("shape", shape, SHAPES, is_needed=kind == "task")
    texts = {
        out / str(path.relative_to(_TEMPLATES / kind).with_suffix("")).replace("NAME", name): path
        for path in sorted((_TEMPLATES / kind).rglob("*.txt"))
    }
    for path in texts:
        if path.exists():
            raise ConfigError(f"{path}: is there already; choose another name, or remove it")
    for path, template in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Template(template.read_text(encoding="utf-8")).substitute(words), encoding="utf-8")
        print(f"wrote {path}")
    part = next(path for path in texts if path.parts[len(out.parts)] != "tests")
    variable = "" if out == Path() else f"{VARIABLE}={out} "
    print(f"next: biasboard check {part}")
    print(f"then: {variable}python -m pytest {out / 'tests' / f'test_{name}.py'}")


def _named(option: str, name: str | None, kind: PlugIns, *, is_needed: bool) -> dict[str, str]:
    """Return the value of an option that names a plug-in, by the name of the option; nothing if no template has it."""
    if (name is not None) != is_needed or (name is not None and name not in kind.names()):
        why = f"there is none called {name}" if is_needed and name else "it is needed" if is_needed else "leave it out"
        raise ConfigError(f"--{option}: {why}; have: {', '.join(kind.names())}")
    return {} if name is None else {option: name}


@one_line_errors()
@with_options
def check(
    part: Annotated[Path, typer.Argument(help="File of a plug-in, where biasboard new would write it.")],
    options: Annotated[BackendOptions, Only({"name", "backend_option"})],
    model: Annotated[str, typer.Option(help="Model that a backend opens.")] = "acme/model",
) -> None:
    """Run a part on a few items to a written result, and compute it again from the stored answers.

    The items are those of the embedded datasets, or of the part's own builder, and the answers are made up, but for a
    backend, which gives its own.
    """
    root, dotted = _place(part)
    if (root / "biasboard" / "parts.py").exists() or root in [folder.resolve() for folder in added_folders()]:
        _checked(dotted, model, options, root)
        return
    # Packages look for plug-ins when they are imported, which some of them are by now.
    folders = os.pathsep.join(filter(None, (str(root), os.environ.get(VARIABLE))))
    done = subprocess.run(
        [sys.executable, "-m", "biasboard", *sys.argv[1:]], env=os.environ | {VARIABLE: folders}, check=False
    )
    raise typer.Exit(done.returncode)


def _place(part: Path) -> tuple[Path, str]:
    """Return the folder of plug-ins that a file lies in, and the dotted name of its module."""
    if not part.is_file() or part.suffix != ".py":
        raise ConfigError(f"{part}: no Python file; name the file of the part")
    parts = part.resolve().with_suffix("").parts
    places = [place for place, name in enumerate(parts) if name in PACKAGES]
    if not places:
        raise ConfigError(f"{part}: lies in none of the folders {', '.join(PACKAGES)}; move it, as biasboard new does")
    module = parts[places[-1] :]
    return Path(*parts[: places[-1]]), ".".join(module[:-1] if module[-1] == "__init__" else module)


def _checked(dotted: str, model: str, options: BackendOptions, root: Path) -> None:
    found = [(kind, name) for kind in _KINDS for name in kind.names() if kind.module_name(name) == dotted]
    if not found:
        raise ConfigError(f"{dotted}: no {', '.join(kind.word for kind in _KINDS)} by its folder and name; rename it")
    kind, name = found[0]
    module = kind.load(name)
    definitions = list(definitions_in(vars(module).values()))
    print(f"{kind.word} {name}: {dotted}")
    n_runs = 0
    with tempfile.TemporaryDirectory() as folder:
        backend = open_backend(name, model, options) if kind is BACKENDS else Made()
        for study in _studies(kind, name, module, root, Path(folder)):
            planned = study.plans(backend, skip=True)
            for line in planned.notes:
                print(line)
            for finished in planned.ask(root=Path(folder, "runs")):
                n_runs += 1
                measures: set[str] | None = None
                if kind is CALIBRATIONS:
                    ending = f"_{module.CALIBRATION.name}"
                    measures = {one.name for one in finished.result.metrics if one.name.endswith(ending)}
                elif kind is METRICS:
                    measures = {definition.name for definition in definitions}
                _report(finished, measures)
                for definition in definitions if kind is METRICS else ():
                    _check_slices(finished, definition)
    if kind in (BUILDERS, BENCHMARKS, PAGES):
        check_plug_ins()
    if not n_runs:
        unknown = {one.task for one in definitions} - {*TASKS.names()} if kind is METRICS else None
        if unknown:
            raise ConfigError(f"{kind.word} {name}: no task '{min(unknown)}'; have: {', '.join(TASKS.names())}")
        raise ConfigError(f"{kind.word} {name}: no embedded dataset has items for it; check the builder that has")
    print(f"written, and computed again from the stored answers: {n_runs} result{'s' * (n_runs != 1)}, all the same")
    for line in _same_identities(name, model, options, backend) if kind is BACKENDS else ():
        print(line)


def _same_identities(name: str, model: str, options: BackendOptions, opened: Backend) -> Iterator[str]:
    """Yield a line for each given option of a backend without which its model is the same: answers are shared then."""
    given = options.backend_option or ()
    for one in given:
        try:
            other = open_backend(name, model, replace(options, backend_option=tuple(set(given) - {one})))
        except BiasboardError:
            continue  # It is needed.
        if other.model.identity_sha256 == opened.model.identity_sha256:
            yield (
                f"warning: the model is the same without {one}, so that answers with and without it are taken for each "
                "other; make it part of identified_model, unless it cannot change an answer"
            )


def _studies(kind: PlugIns, name: str, module: ModuleType, root: Path, folder: Path) -> Iterator[Study]:
    """Yield what is asked: the configs of the datasets at hand that the part is for, with each task that it is for."""
    for dataset in _datasets(kind, name, root, folder):
        manifest = read_manifest(dataset)
        if kind in (BENCHMARKS, PAGES) and manifest.benchmark != name:
            continue
        for config in manifest.whole_names:
            listed = shape_listed(manifest, config)
            shape = shape_of(listed, where=str(dataset)).name
            fitting = [task for task in TASKS.names() if load_task(task).item_shape == shape]
            if kind is TASKS:
                tasks = [task for task in fitting if task == name]
            elif kind is METRICS:
                of_metrics = {one.task for one in definitions_in(vars(module).values())}
                tasks = [task for task in fitting if task in of_metrics]
            elif kind is CALIBRATIONS:
                ending = f"_{module.CALIBRATION.name}"
                tasks = [task for task in fitting if any(one.name.endswith(ending) for one in metric_definitions(task))]
            else:
                tasks = [task.name for task in tasks_for(listed) if kind is not SHAPES or shape == name]
            for task in tasks:
                # One prompt is enough, but for a part that is computed from several.
                named = () if kind is CALIBRATIONS else (next(iter(load_task(task).prompts)),)
                yield Study(
                    datasets=(dataset,),
                    configs=(config,),
                    task=task,
                    limit=_FEW,
                    # Examples are not asked about, unless a correction learns from them.
                    measured_only=kind is not CALIBRATIONS,
                    prompts=() if kind is BACKENDS else named,
                )


def _datasets(kind: PlugIns, name: str, root: Path, folder: Path) -> Iterator[Path]:
    """Yield the folders of the embedded datasets, and of those that the builders beside the part make."""
    is_named = kind in (BUILDERS, BENCHMARKS, PAGES)
    own = (
        {} if kind is BACKENDS else {one: BUILDERS.load(one) for one in BUILDERS.names() if not is_named or one == name}
    )
    for builder, module in own.items():
        # Those that `python -m builders` lists are below.
        if hasattr(module, "BUILDER") or not hasattr(module, "app") or root not in Path(module.__file__ or "").parents:
            continue
        out = folder / "datasets" / builder
        with working(f"building {builder}"):
            call(builder_application(builder), {"out": out})
        yield out
    for known in all_builders():
        source = next((one for one in known.sources if one.input is None), None)
        if source is not None and (not is_named or known.name == name):
            built = DATASETS_FOLDER / source.dataset
            # What the user has built is taken; nothing is left beside it.
            place = built if (built / MANIFEST).is_file() else folder / "datasets" / source.dataset
            with working(f"building {source.dataset}"):
                build_if_missing(known, source, place)
            yield place


def _report(finished: Finished, measures: Collection[str] | None) -> None:
    """Print a run, and check that the measures of the part, if it has any, have values and are computed again alike."""
    result, signature, counts = finished.result, finished.result.signature, finished.result.counts
    others = {"refused": counts.refused, "unparsed": counts.unparsed, "failed": counts.failed}
    said = ", ".join([f"{counts.scored} scored", *(f"{n} {status}" for status, n in others.items() if n)])
    print(f"{signature.dataset} {signature.config}, task {signature.task}, prompt {signature.prompt}: {said}")
    own = [
        one
        for one in (load_benchmark(signature.benchmark).headlines(result) if measures is None else result.metrics)
        if not one.group and (measures is None or one.name in measures)
    ]
    width = max((len(one.name) for one in own[:_MOST_SHOWN]), default=0)
    for one in own[:_MOST_SHOWN]:
        value, interval = value_and_interval(one)
        print(f"  {one.name:<{width}}  {value} {interval}" if one.reason is None else f"  {one.name}: {one.reason}")
    if len(own) > _MOST_SHOWN:
        print(f"  and {len(own) - _MOST_SHOWN} more")
    if measures is not None and all(one.value is None for one in own):
        raise DataError(
            f"{signature.task}: no measure of the part has a value on made-up answers; see the reasons above"
        )
    if changes := rescore(finished.folder).changes:
        raise RunError(f"{finished.folder.name}: computed again, {changes[0]}; the part must give the same each time")


def _check_slices(finished: Finished, definition: MetricDefinition[Any]) -> None:
    """Check that the groups by which a metric is sliced are groups of the records; print what they are."""
    result = finished.result
    if definition.task != result.signature.task:
        return
    wanted = [(each,) if isinstance(each, str) else each for each in definition.slices]
    for names in wanted:
        values = [one for one in result.metrics if one.name == definition.name and one.group.keys() == {*names}]
        if not values:
            have = dict.fromkeys(name for one in read_run(finished.folder).records[:1] for name in one.groups)
            raise DataError(
                f"metric '{definition.name}': slices names {' and '.join(names)}; give a tuple of groups that records "
                f"have: {', '.join(have)}"
            )
        shown = (
            f"{' '.join(one.group.values())} {'none' if one.value is None else f'{one.value:.4f}'}" for one in values
        )
        print(f"  {definition.name} by {' and '.join(names)}: {', '.join(shown)}")


class Made(Backend):
    """Answers that are made up: each option in turn is the likeliest, and texts are the last words of their prompts."""

    model = identified_model("check/made-up", {"backend": "check", "version": "1"})
    runtime = Runtime()
    arguments: Sequence[str] = ("--model made-up",)
    capabilities: frozenset[Capability] = frozenset(get_args(Capability))

    @override
    def answer(self, requests: Sequence[Request]) -> list[Response]:
        return [_made_up(request) for request in requests]


def _made_up(request: Request) -> Response:
    turn = int(request.sha256[:8], 16)
    if isinstance(request, ChoiceRequest):
        n_options = len(request.options)
        return Response(
            status="answered",
            option_logprobs=tuple(-1.0 - (turn + place) % n_options for place in range(n_options)),
            option_end_logprobs=(0.0,) * n_options,
            option_token_counts=(1,) * n_options,
            n_moved_tokens=0,
        )
    assert isinstance(request, GenerateRequest)
    outcomes = request.outcomes
    text = outcomes[turn % len(outcomes)] if outcomes else " ".join(request.prompt.split()[-_N_WORDS:])
    return Response(status="answered", text=text, finish_reason="stop", n_completion_tokens=1, text_logprob=-1.0)
