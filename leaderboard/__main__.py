"""The command line ``python -m leaderboard build|keys|serve|verify``."""

from __future__ import annotations

from schemas.command_line import Place, command_group

COMMANDS = {
    "build": Place("leaderboard.commands.build:build", "Check every result, recompute its metrics and write the site."),
    "keys": Place(
        "leaderboard.commands.keys:keys",
        "Write the answer keys of datasets: one for each config, suite and prompt.",
    ),
    "serve": Place(
        "leaderboard.commands.serve:serve",
        "Serve the built site on this machine until Ctrl-C.",
    ),
    "verify": Place(
        "leaderboard.commands.verify:verify",
        "Compare results with their datasets and compute every number again.",
    ),
}
app = command_group("Build and serve the leaderboard.", COMMANDS)


if __name__ == "__main__":
    app()
