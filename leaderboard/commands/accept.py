"""``python -m leaderboard accept``: a maintainer enters decisions about results into the register."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import held, sha256_file
from leaderboard.verify.board_files import RESULTS
from leaderboard.verify.entries import why_insufficient
from leaderboard.verify.submissions import place_for, read_register, why_not_owner, write_register
from schemas.documents.board import Acceptance, Decision, Register
from schemas.files import contract
from schemas.folders.run_folder import RESULT, read_result
from schemas.outputs.documents import Verdict, Verdicts


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
    today = datetime.date.today().isoformat()
    reported = {} if report is None else _read_report(report)

    def decided() -> Register:
        register = read_register(results)
        decisions = register.by_place
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
            if report is not None and result_sha256 not in reported:
                raise DataError(f"{report}: says nothing about {path} as it is now; verify it again with --report")
            now = reported.get(result_sha256)
            rerun = None if now is None else now.rerun
            if rerun is not None and (lack := why_insufficient(rerun, result)) is not None:
                raise DataError(
                    f"{report}: says too little about {folder}: {lack}; ask the model again with biasboard verify "
                    "--rerun"
                )
            texts_compared = today if now and now.texts_compared else None
            scores_compared = today if now and now.scores_compared else None
            # What was asked again or compared before says nothing about a result that changed since then.
            if before is not None and before.result_sha256 == result_sha256:
                rerun = rerun or before.rerun
                texts_compared = texts_compared or before.texts_compared
                scores_compared = scores_compared or before.scores_compared
            decisions[folder] = Acceptance(
                place=folder,
                result_sha256=result_sha256,
                accepted=today if before is None else before.accepted,
                owner=account,
                decision=decision,
                reason=reason,
                decided=None if decision == "accepted" else today if is_new or before is None else before.decided,
                rerun=rerun,
                texts_compared=texts_compared,
                scores_compared=scores_compared,
            )
        return replace(register, results=tuple(decisions.values()))

    # What is refused leaves no lock behind. Another command may change the register until the lock is held.
    decided()
    with held(results):
        entered = decided()
        write_register(results, entered)
    print(f"entered {len(place)} {'result' if len(place) == 1 else 'results'} into the register of {results}")
    tries = entered.tries()
    print("".join(f"{told}\n" for told in dict.fromkeys(tries[folder] for folder in place if folder in tries)), end="")


def _read_report(report: Path) -> dict[str, Verdict]:
    """Return what a report says about accepted results, by the hash of each ``result.json``.

    Raises:
        DataError: the file is no report, or nothing was asked again or compared.
    """
    by_result = {
        verdict.result_sha256: verdict
        for verdict in contract.read(report, Verdicts).verdicts
        if verdict.reason is None
        and verdict.result_sha256 is not None
        and (verdict.rerun is not None or verdict.texts_compared or verdict.scores_compared)
    }
    if not by_result:
        raise DataError(
            f"{report}: nothing in it was asked again or compared; write it with: biasboard verify --rerun N "
            "--report FILE, with --texts FOLDER or with --scores"
        )
    return by_result
