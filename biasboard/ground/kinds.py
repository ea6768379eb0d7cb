"""The kinds of plug-ins of all packages, in a file that imports no library, so that their names are listed quickly."""

from __future__ import annotations

from biasboard.ground.plugins import PlugIns

BUILDERS = PlugIns("builders", "builders", word="builder")
SHAPES = PlugIns("items", "schemas.items", word="item shape", defines="SHAPE")
BACKENDS = PlugIns("backends", "evaluators.backends", word="backend", defines="open_backend")
BENCHMARKS = PlugIns("benchmarks", "evaluators.tasks", word="benchmark", defines="BENCHMARK", suffix="_benchmark")
CALIBRATIONS = PlugIns(
    "calibrations", "evaluators.calibration", word="calibration", defines="CALIBRATION", suffix="_calibration"
)
HARNESSES = PlugIns("harnesses", "evaluators.harnesses", word="harness", defines="HARNESS", is_dashed=True)
METRICS = PlugIns("metrics", "evaluators.tasks", word="metric file", suffix="_metrics")
SCORERS = PlugIns("scorers", "evaluators.scorers", word="scorer", defines="open_scorer")
TASKS = PlugIns("tasks", "evaluators.tasks", word="task", defines="TASK", suffix="_task")
FORMATS = PlugIns("formats", "leaderboard.formats", word="format", defines="FORMAT", is_dashed=True)
PAGES = PlugIns("pages", "leaderboard.benchmarks", word="benchmark's pages", defines="PAGES")
