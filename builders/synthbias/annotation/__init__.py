"""Annotation of minimal pairs by people: who is asked what, which votes count, and which pairs are accepted.

The protocol is that of SynthBias (Wang et al. 2025, arXiv:2505.23996): three yes-or-no questions about each sentence,
four to ten annotators, and thresholds at 75 and 25 percent.

::

    dataset ──annotated──> sentences ──planning──> batch ──platforms, vote_page (session), model_votes──> annotators
                                          ^                                                              │
                                       deciding <── votes, state <── vote_intake (safe_csv) <────────────┘
                                          │ entrance: who may vote
                                          └── accepted ──> dataset of the accepted pairs;  agreement: the report

*state* reads and writes ``votes.csv`` and the other files of an annotation. *annotate_commands* holds the
commands of ``annotate`` except ``serve``.
"""

from __future__ import annotations

from biasboard.ground.command_line import LazyCommand, command_group

_COMMANDS = "builders.synthbias.annotation.annotate_commands"
COMMANDS = {
    "plan": LazyCommand(f"{_COMMANDS}:plan", "Plan the next batch: the sentences that need more votes."),
    "export": LazyCommand(f"{_COMMANDS}:export", "Write a batch, or the entrance test, for a platform."),
    "ingest": LazyCommand(f"{_COMMANDS}:ingest", "Take votes in from files of a platform."),
    "exclude": LazyCommand(f"{_COMMANDS}:exclude", "Stop counting the votes of an annotator; the votes are kept."),
    "decide": LazyCommand(f"{_COMMANDS}:decide", "Decide by the votes, and write a dataset of the accepted pairs."),
    "report": LazyCommand(
        f"{_COMMANDS}:report", "Show agreement, votes per item, yield, and how each annotator agrees."
    ),
    "serve": LazyCommand(
        "builders.synthbias.annotation.vote_page:serve", "Serve a page on this machine on which one annotator votes."
    ),
}
app = command_group("Have people judge the sentences of a dataset, and keep the pairs that they accept.", COMMANDS)
