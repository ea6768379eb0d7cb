"""The commands ``python -m leaderboard queue add|list|next|done``: requests to score a model."""

from __future__ import annotations

import datetime
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground import strict_json
from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import held
from biasboard.ground.options import finite
from biasboard.ground.plain_text import printable
from leaderboard.verify.board_files import RESULTS
from schemas.documents.base import SCHEMA_VERSION
from schemas.documents.board import ScoringRequest
from schemas.files import contract
from schemas.folders.run_folder import RESULT

app = typer.Typer(
    help="Keep requests to score a model, and turn the next one into a run.",
    no_args_is_help=True,
    add_completion=False,
)
_Folder = Annotated[Path, typer.Option("--queue", help="Folder of all requests.")]
_QUEUE = Path("leaderboard/queue")


@app.command("add")
@one_line_errors("stopped; nothing was added")
def add_command(
    model: Annotated[str, typer.Argument(help="Id of the model on the Hub, or its name at an endpoint.")],
    requester: Annotated[str, typer.Option(help="Account or address of who asks.")],
    revision: Annotated[str | None, typer.Option(help="Commit, tag or version.")] = None,
    backend: Annotated[str, typer.Option(help="Backend that can ask the model.")] = "transformers",
    memory_gb: Annotated[
        float | None, typer.Option(callback=finite, help="Memory of an accelerator that it needs, in GB.")
    ] = None,
    train_data_disclosure: Annotated[
        str | None, typer.Option(help="Statement on whether it was trained on items of the benchmarks.")
    ] = None,
    queue: _Folder = _QUEUE,
) -> None:
    """Add a request to the queue."""
    request = ScoringRequest(
        schema_version=SCHEMA_VERSION,
        model=model,
        revision=revision,
        backend=backend,
        memory_gb=memory_gb,
        train_data_disclosure=train_data_disclosure,
        requester=requester,
        requested=datetime.date.today().isoformat(),
        state="open",
        closed=None,
        places=(),
        reason=None,
    )
    name = _name(request)
    contract.check(request, where=f"request {name}")
    if not queue.exists():
        queue.mkdir(parents=True)
    with held(queue):
        if name in _read(queue):
            raise ConfigError(f"{queue / name}.json: the same model, revision and backend were requested before")
        _write(queue, name, request)
    print(f"added {name}: {model}")


@app.command("list")
@one_line_errors()
def list_command(
    every: Annotated[bool, typer.Option("--all", help="Also list requests that are done or declined.")] = False,
    queue: _Folder = _QUEUE,
) -> None:
    """List the requests, the oldest first."""
    for name, request in _read(queue).items():
        if request.state != "open" and not every:
            continue
        model = request.model if request.revision is None else f"{request.model}@{request.revision}"
        needs = "" if request.memory_gb is None else f", {request.memory_gb:g} GB"
        outcome = request.reason or ", ".join(request.places)
        ended = "" if request.state == "open" else f", {request.state} {request.closed}: {outcome}"
        print(printable(f"{name}  {request.requested}  {model}  {request.backend}{needs}{ended}", most=2_000))


@app.command("next")
@one_line_errors()
def next_command(
    datasets: Annotated[Path, typer.Option(help="Folder of built datasets.")] = Path("out/datasets"),
    memory_gb: Annotated[
        float | None, typer.Option(callback=finite, help="Memory of the accelerator here, in GB.")
    ] = None,
    queue: _Folder = _QUEUE,
) -> None:
    """Print the commands that score the oldest open request that fits this machine."""
    for name, request in _read(queue).items():
        is_too_large = memory_gb is not None and (request.memory_gb or 0) > memory_gb
        if request.state == "open" and not is_too_large:
            words = ["biasboard", "run"]
            for folder in sorted(path.parent for path in datasets.glob("*/dataset.json")):
                words += ["--dataset", str(folder)]
            words += ["--backend", request.backend, "--model", request.model]
            words += [] if request.revision is None else ["--revision", request.revision]
            print(f"{shlex.join(words)}")
            print(f"biasboard queue done {name} --place PLACE")
            return
    raise DataError(f"{queue}: no open request fits; see them all with: biasboard queue list --all")


@app.command("done")
@one_line_errors("stopped; nothing was changed")
def done_command(
    name: Annotated[str, typer.Argument(help="Name of the request, as 'list' shows it.")],
    place: Annotated[
        list[str] | None, typer.Option(help="Folder of a result, relative to that of all accepted results.")
    ] = None,
    declined: Annotated[str | None, typer.Option(help="Reason why the model is not scored.")] = None,
    results: Annotated[Path, typer.Option(help="Folder of accepted results.")] = RESULTS,
    queue: _Folder = _QUEUE,
) -> None:
    """Close a request: with the places of its results, or with the reason why there are none."""
    if (declined is None) != bool(place):
        raise ConfigError("a request is closed by --place, which may be repeated, or by --declined REASON")
    for folder in place or ():
        if not (results / folder / RESULT).is_file():
            raise DataError(f"{results / folder}: no {RESULT} here; submit the run first")
    with held(queue):
        found = _read(queue).get(name)
        if found is None or found.state != "open":
            raise ConfigError(f"{queue}: has no open request {name}; see them with: biasboard queue list")
        closed = replace(
            found,
            state="declined" if declined is not None else "done",
            closed=datetime.date.today().isoformat(),
            places=tuple(place or ()),
            reason=declined,
        )
        _write(queue, name, closed)
    print(f"{closed.state}: {closed.model}")


def _read(queue: Path) -> dict[str, ScoringRequest]:
    """Return all requests by name, the oldest first.

    Raises:
        DataError: a file is no request.
    """
    requests = {}
    if queue.exists() and not queue.is_dir():
        raise DataError(f"{queue}: is no folder; name the folder of all requests")
    for path in queue.glob("*.json"):
        request = contract.read(path, ScoringRequest)
        # Strangers propose requests too, and a maintainer copies the commands that name them into a terminal.
        if path.stem != (name := _name(request)):
            raise DataError(f"{queue}: {printable(path.name)} is not named after its request; rename it {name}.json")
        requests[name] = request
    return dict(sorted(requests.items(), key=lambda named: (named[1].requested, named[0])))


def _name(request: ScoringRequest) -> str:
    return strict_json.sha256([request.model, request.revision, request.backend])[:8]


def _write(queue: Path, name: str, request: ScoringRequest) -> None:
    path = queue / f"{name}.json"
    contract.check(request, where=str(path))
    strict_json.write(path, contract.dump(request))
