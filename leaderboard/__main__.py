"""The command line ``python -m leaderboard build|serve``."""

from __future__ import annotations

from schemas.command_line import Place, command_group

COMMANDS = {
    "build": Place("leaderboard.commands.build:build", "Check every result, recompute its metrics and write the site."),
    "serve": Place(
        "leaderboard.commands.serve:serve",
        "Serve the built site on this machine until Ctrl-C.",
    ),
}
app = command_group("Build and serve the leaderboard.", COMMANDS)


if __name__ == "__main__":
    app()
