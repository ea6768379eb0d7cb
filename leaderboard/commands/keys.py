"""``python -m leaderboard keys``: answer keys, by which results on a dataset are checked without its texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.progress import progress
from evaluators.benchmark import load_benchmark
from evaluators.runs.measure.stored_results import key_of_dataset
from evaluators.runs.plan.plan import NoExamplesError, shape_listed
from evaluators.task import Prompt, UnfitPromptError, tasks_for
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
        have = list(_wanted(manifest))
        for given, flag, names in (
            (config, "--config", {name for name, _, _ in have}),
            (prompt, "--prompt", {name for _, _, asked in have for name in (asked.id, asked.protocol) if name}),
        ):
            if given and not {*given} & names:
                raise ConfigError(
                    f"{folder}: {flag} {' '.join(given)} fits none of its configs; have: {', '.join(sorted(names))}"
                )
        wanted = [
            (name, task, asked)
            for name, task, asked in have
            if (not config or name in config) and (not prompt or {asked.id, asked.protocol} & {*prompt})
        ]
        if not wanted:
            raise ConfigError(f"{folder}: no config of {' '.join(config or ())} is asked with {' '.join(prompt or ())}")
        n_bytes = n_keys = 0
        with progress(f"keys of {manifest.name} {manifest.version}", len(wanted)) as advance:
            for name, task, asked in wanted:
                # Nobody can be asked about such a config with this prompt.
                with suppress(NoExamplesError, UnfitPromptError):
                    made = key_of_dataset(folder, manifest, config=name, task=task, prompt=asked.id)
                    path = write_key(out, made)
                    n_bytes, n_keys = n_bytes + path.stat().st_size + len(made.items), n_keys + 1
                advance(1)
        print(f"wrote {n_keys} keys ({n_bytes / 1000:,.0f} kB) to {out / f'{manifest.name}@{manifest.version}'}")


def _wanted(manifest: Manifest) -> Iterator[tuple[str, str, Prompt]]:
    """Yield all ways of asking a dataset: its suites and configs, the tasks that fit them, and their prompts.

    Those of published answers are among them if answers on the dataset were published.
    """
    importer = load_benchmark(manifest.benchmark).importer_of(manifest.name)
    for config in (*(suite.name for suite in manifest.suites), *manifest.configs):
        for task in tasks_for(shape_listed(manifest, config)):
            for prompt in task.prompts.values():
                if prompt.requires != "import" or (importer is not None and prompt.id == importer.prompt):
                    yield config, task.name, prompt
