"""The commands ``python -m evaluators reweight evaluate|fit|apply``: *commands*.

*inputs* reads a file of class probabilities, or a finished run.
"""

from __future__ import annotations

from biasboard.ground.command_line import LazyCommand, command_group

HELP = "Measure how evenly class probabilities are right over their classes, and fit and apply corrections."
COMMANDS = {
    "evaluate": LazyCommand(
        "evaluators.calibration.reweighting.command.commands:evaluate_command",
        "Print the accuracy of each class and how even they are, with intervals; with --rules also after a correction.",
    ),
    "fit": LazyCommand(
        "evaluators.calibration.reweighting.command.commands:fit_command",
        "Fit a correction on rows with known classes, write its rules, and print what to doubt about them.",
    ),
    "apply": LazyCommand(
        "evaluators.calibration.reweighting.command.commands:apply_command",
        "Apply rules to rows, with or without known classes, and write the predicted class and the corrected shares.",
    ),
}
app = command_group(HELP, COMMANDS)
