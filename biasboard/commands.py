"""The commands of ``biasboard``, which are those of all packages; ``python -m PACKAGE`` runs them too."""

from __future__ import annotations

from biasboard.ground.command_line import LazyCommand, command_group
from evaluators.__main__ import COMMANDS as EVALUATORS
from leaderboard.__main__ import COMMANDS as LEADERBOARD

app = command_group(
    "Build bias benchmarks, score language models on them, and publish the results.",
    {
        "demo": LazyCommand("biasboard.building:demo", "Build the embedded datasets and the board."),
        "build": LazyCommand(
            "biasboard.building:app", "Build a dataset; without a name, list the builders and their sources."
        ),
        "score": LazyCommand(
            "biasboard.scoring:score_command",
            "Score a model on every benchmark with the prompts that fit it, and compare it with the board.",
        ),
        "reproduce": LazyCommand(
            "biasboard.reproducing:reproduce", "Give the numbers of a paper again, and compare them."
        ),
        "card": LEADERBOARD["card"],
        "publish": LazyCommand(
            "biasboard.publishing:publish", "Publish a dataset, or the results of runs, on the Hugging Face Hub."
        ),
        # Renamed, because the board has a command export too, for results.
        **{"questions" if name == "export" else name: command for name, command in EVALUATORS.items()},
        "board": LEADERBOARD["build"],
        "export": LEADERBOARD["export"],
        "keys": LEADERBOARD["keys"],
        "ranks": LEADERBOARD["ranks"],
        "serve": LEADERBOARD["serve"],
        "verify": LEADERBOARD["verify"],
        "submit": LEADERBOARD["submit"],
        "accept": LEADERBOARD["accept"],
        "new": LazyCommand(
            "biasboard.parts:new", "Write the shortest part that works, with its test, to be changed into yours."
        ),
        "check": LazyCommand(
            "biasboard.parts:check",
            "Run a part on a few items to a written result, and compute it again from the stored answers.",
        ),
        "validate": LazyCommand(
            "schemas.validate:app",
            "Check datasets, runs and results against the contract; exit with 1 if anything is wrong.",
        ),
    },
    is_door=True,
)
