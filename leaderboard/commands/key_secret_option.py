"""The option ``--key-secret``, which several commands of the board take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from schemas.files.key_secret import VARIABLE

KeySecretFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--key-secret",
        envvar=VARIABLE,
        help="File of the secret with which answer keys of held-out datasets were made.",
    ),
]
