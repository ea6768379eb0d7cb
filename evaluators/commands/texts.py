"""The command ``python -m evaluators texts``: writes the texts of a run that need scores."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.files import replacing
from biasboard.ground.plain_text import protected
from biasboard.ground.progress import working
from evaluators.task import load_task
from evaluators.task_abilities import ReadsScores
from schemas.folders.run_folder import RESULT, read_complete_result, read_parts


@one_line_errors()
def texts_command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    out: Annotated[Path, typer.Option(help="CSV file to write, with the column text.")],
) -> None:
    """Write the texts of a run that need scores, so that another service can score them.

    The texts are answers, and answers without the part that repeats the prompt. A text that a spreadsheet would take
    for a formula has an apostrophe in front; leave it there, and score the text without it.
    """
    folder = run.parent if run.name == RESULT else run
    result = read_complete_result(folder)
    task = load_task(result.signature.task)
    if not isinstance(task, ReadsScores):
        raise ConfigError(f"{run}: task {task.name} reads no scores of texts")
    if out.exists():
        raise ConfigError(f"--out {out}: exists already; name another file, or remove it")
    with working("collecting the texts"):
        texts = list(dict.fromkeys(text for records in read_parts(folder, result) for text in task.texts(records)))
    with replacing(out) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["text"], *([protected(text)] for text in texts)])
    print(f"wrote {len(texts):,} texts to {out}; add a column score, then use --scorer KIND=stored:FILE@NAME-REVISION")
