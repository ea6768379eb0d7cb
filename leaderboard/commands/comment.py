"""``python -m leaderboard comment``: verdicts as Markdown, for the comment on a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.files import check_readable
from biasboard.ground.plain_text import printable
from leaderboard.pages.markup import plain_markdown
from leaderboard.verify.submissions import DECIDING
from schemas.files import contract
from schemas.outputs.documents import Verdicts

_MOST_BYTES = 4 << 20
_MOST_SHOWN = 50
_MOST_CHARACTERS = 600
_MOST_LISTED = 300
"""Number of changed files from which the code host may leave others out."""


@one_line_errors("stopped")
def comment(
    report: Annotated[Path, typer.Argument(help="Verdicts that verify --report wrote, from a job that nobody trusts.")],
    changed: Annotated[
        Path | None,
        typer.Option(help="File with the paths that the pull request changes, one a line, from the code host."),
    ] = None,
) -> None:
    """Print verdicts as Markdown in which no text from a result can act.

    The report may come from a job that ran on a stranger's files: it is read as data, and every text in it is escaped.
    With --changed, verdicts of a pull request that changes workflows, scripts of CI or answer keys are not shown: it
    may have written them itself.
    """
    deciding: list[str] = []
    if changed is not None:
        check_readable(changed, most=_MOST_BYTES)
        paths = changed.read_text(encoding="utf-8", errors="replace").splitlines()
        deciding = [path for path in paths if path.startswith(DECIDING)]
        if len(paths) >= _MOST_LISTED:
            deciding = [f"{len(paths)} files or more, of which the code host lists no others"]
    if deciding:
        print("### The submitted results were not verified\n")
        print(
            "This pull request changes what decides how results are verified, so that its verdicts may be its own and "
            "are not shown. Submit results in a pull request of their own.\n"
        )
        for path in deciding[:_MOST_SHOWN]:
            print(f"- {plain_markdown(printable(path, most=_MOST_CHARACTERS))}")
        return
    check_readable(report, most=_MOST_BYTES)
    verdicts = contract.read(report, Verdicts).verdicts
    print("### Verification of the submitted results\n")
    for verdict in verdicts[:_MOST_SHOWN]:
        reasons = verdict.warnings if verdict.reason is None else (verdict.reason,)
        parts = [printable(part, most=_MOST_CHARACTERS) for part in (verdict.place, verdict.model, *reasons) if part]
        print(f"- **{verdict.state}**: {'; '.join(str(plain_markdown(part)) for part in parts)}")
    if len(verdicts) > _MOST_SHOWN:
        print(f"- and {len(verdicts) - _MOST_SHOWN} more")
    if not verdicts:
        print("No result was added or changed.")
