"""``python -m leaderboard keys``: answer keys, by which results on a dataset are checked without its texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.progress import progress
from evaluators.benchmark import load_benchmark
from evaluators.runs.measure.answer_keys import key_of_dataset
from evaluators.runs.plan.plan import NoExamplesError
from evaluators.runs.plan.selection import shape_listed
from evaluators.task import Prompt, UnfitPromptError, load_task, tasks_for
from leaderboard.verify.board_files import KEYS
from leaderboard.verify.keys import write_key
from schemas.documents.dataset import Manifest
from schemas.folders.dataset_folder import read_manifest


@one_line_errors("stopped; finished keys are kept")
def keys(
    dataset: Annotated[list[Path], typer.Argument(help="Folders of built datasets.")],
    prompt: Annotated[
        list[str] | None, typer.Option(help="Prompt or protocol; may be repeated. By default every prompt.")
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option(help="Config or suite; may be repeated. By default all of them.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of all answer keys.")] = KEYS,
) -> None:
    """Write the answer keys of datasets: one for each config, suite and prompt.

    A key holds hashes of what is asked about each item and of what is right, and no text. With the keys of a dataset, a
    board can check results on it without having it. Keys are made from the dataset alone and never from an answer.
    """
    for folder in dataset:
        manifest = read_manifest(folder)
        wanted = _chosen(folder, list(_wanted(manifest)), config or (), prompt or ())
        n_bytes = n_keys = 0
        with progress(f"keys of {manifest.name} {manifest.version}", len(wanted)) as advance:
            for one in wanted:
                # Nobody can be asked about such a config with this prompt.
                with suppress(NoExamplesError, UnfitPromptError):
                    made = key_of_dataset(folder, manifest, **one._asdict())
                    path = write_key(out, made)
                    n_bytes, n_keys = n_bytes + path.stat().st_size + len(made.items), n_keys + 1
                advance(1)
        print(f"wrote {n_keys} keys ({n_bytes / 1000:,.0f} kB) to {out / f'{manifest.name}@{manifest.version}'}")


def _chosen(folder: Path, have: Sequence[_Wanted], configs: Sequence[str], prompts: Sequence[str]) -> list[_Wanted]:
    """Return the ways of asking a dataset that the command line names."""
    for given, option, names in (
        (configs, "--config", [one.config for one in have]),
        (prompts, "--prompt", [name for one in have for name in one.names]),
    ):
        if given and not {*given} & {*names}:
            raise ConfigError(
                f"{folder}: {option} {' '.join(given)} fits none of its configs; have: {', '.join(sorted({*names}))}"
            )
    chosen = [
        one for one in have if (not configs or one.config in configs) and (not prompts or {*one.names} & {*prompts})
    ]
    if not chosen:
        raise ConfigError(f"{folder}: no config of {' '.join(configs)} is asked with {' '.join(prompts)}")
    return chosen


class _Wanted(NamedTuple):
    config: str
    task: str
    prompt: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the prompt on a command line: its id, and its protocol if it has one."""
        return tuple(dict.fromkeys((self.prompt, load_task(self.task).prompts[self.prompt].protocol or self.prompt)))


def _wanted(manifest: Manifest) -> Iterator[_Wanted]:
    """Yield all ways of asking a dataset: its suites and configs, the tasks that fit them, and their prompts."""
    for config in (*(suite.name for suite in manifest.suites), *manifest.configs):
        for task in tasks_for(shape_listed(manifest, config)):
            for prompt in task.prompts.values():
                if _is_asked(manifest, prompt):
                    yield _Wanted(config, task.name, prompt.id)


def _is_asked(manifest: Manifest, prompt: Prompt) -> bool:
    """Return True if a prompt can be asked, or if answers on the dataset were published."""
    importer = load_benchmark(manifest.benchmark).importer
    return prompt.requires != "import" or (importer is not None and importer.dataset == manifest.name)
