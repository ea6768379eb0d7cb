"""The command line ``python -m leaderboard build|accept|card|comment|export|keys|ranks|serve|submit|verify``."""

from __future__ import annotations

from biasboard.ground.command_line import LazyCommand, command_group
from biasboard.ground.errors import stop_at_once

_HELP = {
    "build": "Check every result, recompute its metrics and write the site.",
    "accept": "Enter results into the register, with the date, the owner of the model and the decision.",
    "card": "Write what goes into a model card: Markdown, metadata for the Hub, a LaTeX table and badges.",
    "comment": "Print verdicts as Markdown in which no text from a result can act.",
    "export": "Write verified results in a format of somebody else.",
    "keys": "Write the answer keys of datasets: one for each config, suite and prompt.",
    "ranks": "Rank models by a table of scores: which are tied, which are not, and by how much they would have to "
    "differ.",
    "serve": "Serve the built site on this machine until Ctrl-C.",
    "submit": "Verify runs, show what will be published, and put it where the board expects it.",
    "verify": "Compare results with their datasets and compute every number again.",
}
COMMANDS = {name: LazyCommand(f"leaderboard.commands.{name}:{name}", text) for name, text in _HELP.items()}
app = command_group("Build and serve the leaderboard.", COMMANDS)


if __name__ == "__main__":
    stop_at_once()
    app()
