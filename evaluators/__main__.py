"""The command line ``python -m evaluators`` with ``run``, ``finetune``, ``rescore``, ``reweight`` and others."""

from __future__ import annotations

from biasboard.ground.command_line import LazyCommand, command_group
from biasboard.ground.errors import stop_at_once

COMMANDS = {
    "run": LazyCommand(
        "evaluators.commands.run:run_command",
        "Ask a model about each item, or continue where an earlier run stopped; write records and results.",
    ),
    "finetune": LazyCommand(
        "evaluators.commands.finetune:finetune_command",
        "Train a LoRA adapter for each config and each prompt of a dataset, with which run --lora asks.",
    ),
    "rescore": LazyCommand(
        "evaluators.commands.rescore:rescore_command",
        "Compute every metric again from stored answers, without the model and without the dataset.",
    ),
    "reweight": LazyCommand(
        "evaluators.calibration.reweighting.command:app",
        "Measure how evenly class probabilities are right over their classes, and fit and apply corrections.",
    ),
    "import": LazyCommand(
        "evaluators.commands.imports:import_command",
        "Turn answers that were given elsewhere into records and results, one run for each config.",
    ),
    "export": LazyCommand(
        "evaluators.commands.export:export_command",
        "Write the questions of a dataset for another harness or as tables, whose log or answers import reads.",
    ),
    "list": LazyCommand(
        "evaluators.commands.listing:list_command",
        "List what there is: the plug-ins of each kind, and the prompts and metrics of tasks.",
    ),
    "doctor": LazyCommand(
        "evaluators.commands.doctor:doctor_command",
        "Check what is installed; with a backend and a model, also compare its scores with those of transformers.",
    ),
}
app = command_group("Score models on built datasets, and score stored answers again.", COMMANDS)


if __name__ == "__main__":
    stop_at_once()
    app()
