"""The command line ``biasboard``: one door to the commands of all packages, which ``python -m`` calls too."""

from __future__ import annotations

from biasboard.ground.command_line import Place, command_group
from evaluators.__main__ import COMMANDS as EVALUATORS
from leaderboard.__main__ import COMMANDS as LEADERBOARD

app = command_group(
    "Build bias benchmarks, score language models on them, and publish the results.",
    {
        "build": Place(
            "biasboard.building:app", "Build a dataset; without a name, list the builders and their sources."
        ),
        "publish": Place(
            "builders.publish.__main__:app",
            "Publish a dataset on the Hugging Face Hub: one commit, and a tag of its version.",
        ),
        # Results are exported too, so the questions of a dataset have another name here.
        **{"questions" if name == "export" else name: place for name, place in EVALUATORS.items()},
        "board": LEADERBOARD["build"],
        "export": LEADERBOARD["export"],
        "keys": LEADERBOARD["keys"],
        "serve": LEADERBOARD["serve"],
        "verify": LEADERBOARD["verify"],
        "submit": LEADERBOARD["submit"],
        "accept": LEADERBOARD["accept"],
        "queue": LEADERBOARD["queue"],
        "validate": Place(
            "schemas.validate:app",
            "Check datasets, runs and results against the contract; exit with 1 if anything is wrong.",
        ),
    },
    is_door=True,
)


def main() -> None:
    """Run the command line under one name, however it was started."""
    app(prog_name="biasboard")


if __name__ == "__main__":
    main()
