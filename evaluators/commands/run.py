"""The command ``python -m evaluators run``, with its option ``--config-file``: asks a model and writes results."""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from biasboard.ground.command_line import ANSWERS_KEPT, one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.options import with_options
from biasboard.ground.toml_files import read_toml
from evaluators.backend_options import COST_PANEL, BackendOptions
from evaluators.commands.shared_options import DATASET_HELP, FILES_PANEL, VERBOSE, RunChoice
from evaluators.runs.ask.study import ITEMS_PANEL, Study
from schemas.outputs.documents import FinishedRuns, RunEstimates
from schemas.printed import Printed, with_format

_NOT_IN_FILES = {"--help", "--config-file"}
_ALIKE = 0.75
"""Likeness of two names, between 0 and 1, from which one is taken for a misspelling of the other."""
_SECRET = re.compile(r"key|token|secret|password|credential|authorization", re.IGNORECASE)


@one_line_errors()
def take_options(context: typer.Context, path: Path | None) -> Path | None:
    """Make the options in a file the defaults of a command, so that the command line overrides them.

    Args:
        context: The context of the command, before its options are parsed.
        path: The file; None if none is named.

    Raises:
        typer.Exit: the file cannot be read, or an option in it does not exist or has a wrong value.
    """
    # Shell completion parses the command line too, and must neither read files nor fail.
    if path is None or context.resilient_parsing:
        return path
    named = (
        (next((name for name in one.opts if name.startswith("--")), one.name), one) for one in context.command.params
    )
    allowed = {name.removeprefix("--"): param for name, param in named if name not in _NOT_IN_FILES}
    options: dict[str, Any] = {}
    for key, value in read_toml(path, option="--config-file", what="options").items():
        param = allowed.get(key.replace("_", "-"))
        if param is None:
            # A typo in "tokenizer" holds a word for secrets too.
            if like := get_close_matches(key.replace("_", "-"), allowed, n=1, cutoff=_ALIKE):
                raise ConfigError(f"{path}: '{key}' does not exist; did you mean '{like[0]}'?")
            if _SECRET.search(key):
                raise ConfigError(
                    f"{path}: '{key}': no secret belongs in a file; set OPENAI_API_KEY or HF_TOKEN in the environment"
                )
            raise ConfigError(f"{path}: '{key}' does not exist; have: {', '.join(allowed).replace('-', '_')}")
        if param.name in options:
            raise ConfigError(f"{path}: '{key}' is there twice, with a dash and with an underscore; keep one")
        values = value if param.multiple and isinstance(value, list) else [value]
        if not all(isinstance(one, str | int | float) for one in values):
            raise ConfigError(f"{path}: {key}: give a text, a number, or true or false")
        # As texts, because a number for a whole number would lose its fraction, and true would become 1.
        texts = [str(one).lower() if isinstance(one, bool) else str(one) for one in values]
        if any(map(_has_password, texts)):
            raise ConfigError(
                f"{path}: {key}: holds a password, which does not belong in a file; give the address on the command "
                "line, or in the environment variable that the backend reads"
            )
        given = texts if param.multiple else texts[0]
        try:
            read = param.process_value(context, given)
        except typer.BadParameter as error:
            told = f"{key} = {', '.join(texts)}: {error.message.rstrip('.')}"
            raise ConfigError(f"{path}: {told}; correct it") from error
        for one, meant in zip(values, read if param.multiple else [read], strict=True):
            # The revision 12345e3 would become 12345000.0.
            if not isinstance(one, str) and not isinstance(meant, bool | int | float):
                raise ConfigError(f"{path}: {key} = {', '.join(texts)}: is no text; put it in quotes")
        options[param.name] = read if isinstance(read, bool) else given
    # A flag set to false counts as left out.
    set_here = {name: value for name, value in options.items() if value is not False}
    context.default_map = {**(context.default_map or {}), **set_here}
    return path


def _has_password(text: str) -> bool:
    try:
        return "://" in text and "@" in urlsplit(text).netloc
    except ValueError:
        return False


_CONFIG_FILE = typer.Option(
    "--config-file",
    is_eager=True,
    callback=take_options,
    help="TOML file of options; those given here win.",
    rich_help_panel=FILES_PANEL,
)
_DRY_RUN = typer.Option(
    "--dry-run",
    help="Print numbers of requests and tokens and the price; ask and write nothing.",
    rich_help_panel=COST_PANEL,
)


@one_line_errors(ANSWERS_KEPT)
@with_format(FinishedRuns, RunEstimates)
@with_options
def run_command(
    dataset: Annotated[list[Path], typer.Option(help=f"{DATASET_HELP} Repeatable.", rich_help_panel=ITEMS_PANEL)],
    study: Study,
    choice: RunChoice,
    options: BackendOptions,
    dry_run: Annotated[bool, _DRY_RUN] = False,
    verbose: Annotated[bool, VERBOSE] = False,
    config_file: Annotated[Path | None, _CONFIG_FILE] = None,
) -> Printed | RunEstimates:
    """Ask a model about each item, or continue where an earlier run stopped; write records and results."""
    # Imported here so that the help of this command stays fast.
    from evaluators.commands.runs_from_options import ask, estimated

    study = replace(study, datasets=tuple(dataset))
    if not dry_run:
        return ask(study, choice, options, verbose=verbose)
    from evaluators.runs.plan.estimate import estimates_document, print_estimates

    estimates = estimated(study, choice, options)
    print_estimates(estimates)
    return estimates_document(estimates)
