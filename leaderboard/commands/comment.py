"""``python -m leaderboard comment``: verdicts as Markdown, for the comment on a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground import strict_json
from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import DataError
from biasboard.ground.files import check_readable
from biasboard.ground.plain_text import printable
from biasboard.ground.strict_json import JsonValue
from leaderboard.pages.markup import plain_markdown

_MOST_BYTES = 4 << 20
_MOST_SHOWN = 50
_MOST_CHARACTERS = 600


@one_line_errors("stopped")
def comment(
    report: Annotated[Path, typer.Argument(help="Verdicts that verify --report wrote, from a job that nobody trusts.")],
) -> None:
    """Print verdicts as Markdown in which no text from a result can act.

    The report may come from a job that ran on a stranger's files: it is read as data, and every text in it is escaped.
    """
    check_readable(report, most=_MOST_BYTES)
    verdicts = strict_json.read(report)
    if not isinstance(verdicts, list) or not all(isinstance(verdict, dict) for verdict in verdicts):
        raise DataError(f"{report}: is no list of verdicts; write it with: biasboard verify --report FILE")
    print("### Verification of the submitted results\n")
    for verdict in verdicts[:_MOST_SHOWN]:
        print(_line(verdict if isinstance(verdict, dict) else {}))
    if len(verdicts) > _MOST_SHOWN:
        print(f"- and {len(verdicts) - _MOST_SHOWN} more")
    if not verdicts:
        print("No result was added or changed.")


def _line(verdict: dict[str, JsonValue]) -> str:
    warnings = verdict.get("warnings")
    warned = warnings if isinstance(warnings, list) else []
    reasons = [verdict["reason"]] if verdict.get("reason") else warned
    parts = [verdict.get("state"), verdict.get("place"), verdict.get("model"), *reasons]
    shown = [str(plain_markdown(printable(str(part), most=_MOST_CHARACTERS))) for part in parts if part]
    return f"- **{shown[0]}**: {'; '.join(shown[1:])}" if shown else "- **unknown**"
