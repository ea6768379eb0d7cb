"""``python -m leaderboard accept``: a maintainer enters decisions about results into the register."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter

from leaderboard.checking.register import acceptances, check_owner, read_register, write_register
from schemas import strict_json
from schemas.command_line import one_line_errors
from schemas.errors import ConfigError, DataError
from schemas.files import sha256_file
from schemas.register import Acceptance, Decision, Rerun
from schemas.run_folder import RESULT, read_result


@one_line_errors("stopped; the register was not changed")
def accept(
    place: Annotated[list[str], typer.Argument(help="Folders of results, relative to that of all results.")],
    owner: Annotated[
        str | None, typer.Option(help="Account at the code host that may submit results of the model; kept if known.")
    ] = None,
    decision: Annotated[
        Decision, typer.Option(help="accepted; preferred settles a dispute; withdrawn keeps a result without a rank.")
    ] = "accepted",
    reason: Annotated[str | None, typer.Option(help="Reason, shown on the board; needed but for accepted.")] = None,
    rerun_report: Annotated[
        Path | None, typer.Option(help="Verdicts that verify --rerun --report wrote: enter how many answers agree.")
    ] = None,
    results: Annotated[Path, typer.Option(help="Folder of accepted results.")] = Path("leaderboard/results"),
) -> None:
    """Enter results into the register, with the date, the owner of the model and the decision.

    Of results with the same answers, the board ranks the one that was accepted first. A result that is changed after
    its acceptance is no longer the accepted one.
    """
    if (decision == "accepted") != (reason is None):
        raise ConfigError("--reason belongs to --decision preferred and withdrawn, and each of them needs one")
    register = read_register(results)
    known = dict(acceptances(register))
    today = datetime.date.today().isoformat()
    reruns = {} if rerun_report is None else _reruns(rerun_report)
    for one in place:
        path = results / one / RESULT
        if not path.is_file():
            raise DataError(f"{path}: no such file; name a folder below {results}")
        before = known.get(one)
        account = owner or (None if before is None else before.owner)
        if account is None:
            raise ConfigError(f"{one}: is not in the register yet; name its --owner")
        if before is None:
            check_owner(register, one, account)
        is_new = before is None or (before.decision, before.reason) != (decision, reason)
        known[one] = Acceptance(
            place=one,
            result_sha256=sha256_file(path),
            accepted=today if before is None else before.accepted,
            owner=account,
            decision=decision,
            reason=reason,
            decided=None if decision == "accepted" else today if is_new or before is None else before.decided,
            rerun=reruns.get(read_result(path.parent).records.sha256, None if before is None else before.rerun),
        )
    write_register(results, replace(register, results=tuple(known.values())))
    print(f"entered {len(place)} {'result' if len(place) == 1 else 'results'} into the register of {results}")


def _reruns(report: Path) -> dict[str, Rerun]:
    """Return the reruns in a report, by the hash of the records that they were compared with.

    Raises:
        DataError: the file is no report, or holds no rerun.
    """
    verdicts = strict_json.read(report)
    found = {}
    for verdict in verdicts if isinstance(verdicts, list) else []:
        if isinstance(verdict, dict) and isinstance(verdict.get("rerun"), dict):
            found[str(verdict.get("records_sha256"))] = TypeAdapter(Rerun).validate_python(verdict["rerun"])
    if not found:
        raise DataError(f"{report}: holds no rerun; write it with: biasboard verify --rerun N --report FILE")
    return found
