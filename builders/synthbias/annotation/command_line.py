"""The group of commands ``python -m builders.synthbias annotate``."""

from __future__ import annotations

from biasboard.ground.command_line import Place, command_group

_PACKAGE = "builders.synthbias.annotation.commands"
HELP = "Have people judge the sentences of a dataset, and keep the pairs that they accept."
COMMANDS = {
    "plan": Place(f"{_PACKAGE}.plan:plan", "Plan the next batch: the sentences that need more votes."),
    "export": Place(f"{_PACKAGE}.export:export", "Write a batch, or the entrance test, for a platform."),
    "ingest": Place(f"{_PACKAGE}.ingest:ingest", "Take votes in from files of a platform."),
    "exclude": Place(f"{_PACKAGE}.exclude:exclude", "Stop counting the votes of an annotator; the votes are kept."),
    "decide": Place(f"{_PACKAGE}.decide:decide", "Decide by the votes, and write a dataset of the accepted pairs."),
    "report": Place(
        f"{_PACKAGE}.report:report", "Show agreement, votes per item, yield, and how each annotator agrees."
    ),
    "serve": Place(f"{_PACKAGE}.serve:serve", "Serve a page on this machine on which one annotator votes."),
}
app = command_group(HELP, COMMANDS)
