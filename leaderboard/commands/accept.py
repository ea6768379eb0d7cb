"""``python -m leaderboard accept``: a maintainer enters decisions about results into the register."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from pydantic import ValidationError

from biasboard.ground import strict_json
from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.strict_json import JsonValue
from leaderboard.verify.board_files import RESULTS
from leaderboard.verify.entries import why_insufficient
from leaderboard.verify.submissions import acceptances, place_for, read_register, why_not_owner, write_register
from schemas.documents.base import from_values
from schemas.documents.board import Acceptance, Decision, Rerun
from schemas.folders.run_folder import RESULT, read_result


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
    report: Annotated[
        Path | None,
        typer.Option(
            help="Verdicts that verify --report wrote: enter how many answers of --rerun agree, and that what --texts "
            "or --scores names was compared."
        ),
    ] = None,
    results: Annotated[Path, typer.Option(help="Folder of accepted results.")] = RESULTS,
) -> None:
    """Enter results into the register, with the date, the owner of the model and the decision.

    Of results with the same answers, the board ranks the one that was accepted first. A result that is changed after
    its acceptance is no longer the accepted one.
    """
    if (decision == "accepted") != (reason is None):
        raise ConfigError("--reason belongs to --decision preferred and withdrawn, and each of them needs one")
    register = read_register(results)
    decisions = dict(acceptances(register))
    today = datetime.date.today().isoformat()
    reported = {} if report is None else _read_report(report)
    for folder in place:
        path = results / folder / RESULT
        if not path.is_file():
            raise DataError(f"{path}: no such file; name a folder below {results}")
        before = decisions.get(folder)
        account = owner or (None if before is None else before.owner)
        if account is None:
            raise ConfigError(f"{folder}: is not in the register yet; name its --owner")
        result = read_result(path.parent)
        if folder != (belongs := place_for(result).as_posix()):
            raise DataError(f"{folder}: belongs into {belongs}; move it there, or submit the run again")
        if before is None and (why := why_not_owner(register, folder, account)) is not None:
            raise DataError(why)
        is_new = before is None or (before.decision, before.reason) != (decision, reason)
        result_sha256 = sha256_file(path)
        # What was asked again or compared says nothing about a result that changed since then.
        same = None if before is None or before.result_sha256 != result_sha256 else before
        if report is not None and result_sha256 not in reported:
            raise DataError(f"{report}: says nothing about {path} as it is now; verify it again with --report")
        now = reported.get(result_sha256, _Reported())
        if now.rerun is not None and (lack := why_insufficient(now.rerun, result)) is not None:
            raise DataError(
                f"{report}: says too little about {folder}: {lack}; ask the model again with biasboard verify --rerun"
            )
        decisions[folder] = Acceptance(
            place=folder,
            result_sha256=result_sha256,
            accepted=today if before is None else before.accepted,
            owner=account,
            decision=decision,
            reason=reason,
            decided=None if decision == "accepted" else today if is_new or before is None else before.decided,
            rerun=now.rerun or (None if same is None else same.rerun),
            texts_compared=today if now.texts_compared else None if same is None else same.texts_compared,
            scores_compared=today if now.scores_compared else None if same is None else same.scores_compared,
        )
    write_register(results, replace(register, results=tuple(decisions.values())))
    print(f"entered {len(place)} {'result' if len(place) == 1 else 'results'} into the register of {results}")


class _Reported(NamedTuple):
    """The contents of a report about one result, besides its verdict."""

    rerun: Rerun | None = None
    texts_compared: bool = False
    scores_compared: bool = False


def _read_report(report: Path) -> dict[str, _Reported]:
    """Return the contents of a report, by the hash of the ``result.json`` that they are about.

    Raises:
        DataError: the file is no report, or nothing was asked again or compared.
    """
    verdicts = strict_json.read(report)
    by_result = {}
    for verdict in verdicts if isinstance(verdicts, list) else []:
        if isinstance(verdict, dict) and verdict.get("reason") is None:
            is_true = (verdict.get(name) is True for name in ("texts_compared", "scores_compared"))
            reported = _Reported(_rerun(report, verdict.get("rerun")), *is_true)
            if reported != _Reported():
                by_result[str(verdict.get("result_sha256"))] = reported
    if not by_result:
        raise DataError(
            f"{report}: nothing in it was asked again or compared; write it with: biasboard verify --rerun N "
            "--report FILE, with --texts FOLDER or with --scores"
        )
    return by_result


def _rerun(report: Path, value: JsonValue) -> Rerun | None:
    try:
        return None if value is None else from_values(value, Rerun)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise DataError(f"{report}: rerun.{field}: {first['msg']}; let biasboard verify write the report") from error
