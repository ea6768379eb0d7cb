"""The command ``python -m evaluators list``: prints all plug-ins."""

from __future__ import annotations

from evaluators.benchmark import benchmarks
from evaluators.harness import harness_names, load_harness
from evaluators.runs.measuring import metric_definitions
from evaluators.task import load_task
from schemas import plugins
from schemas.command_line import one_line_errors


@one_line_errors()
def list_command() -> None:
    """List benchmarks with their baselines, backends, scorers, harnesses, tasks, prompts and metrics."""
    for benchmark in benchmarks():
        print(f"benchmark {benchmark.name}")
        for baseline in benchmark.baselines:
            print(f"  baseline {baseline.name}: {baseline.description}")
        for index in benchmark.indices:
            print(f"  index {index.name}: {index.description}")
    for name in plugins.names("evaluators.backends"):
        module = plugins.load("evaluators.backends", name, kind="backend")
        extra = "" if module.EXTRA is None else f" (extra: {module.EXTRA})"
        print(f"backend {name}: {module.SUMMARY}{extra}")
    for name in plugins.names("evaluators.scorers"):
        module = plugins.load("evaluators.scorers", name, kind="scorer")
        print(f"scorer {name}: {module.SUMMARY}")
        for kind in module.KINDS:
            print(f"  kind {kind}")
    for name in harness_names():
        print(f"harness {name}: {load_harness(name).summary}")
    for name in plugins.names("evaluators.tasks"):
        task = load_task(name)
        print(f"task {name} {task.version}: asks about items of shape {task.item_shape}")
        for prompt in task.prompts.values():
            print(f"  prompt {prompt.id}: {prompt.description}")
        for metric in metric_definitions(name):
            print(f"  metric {metric.name} {metric.version}: {metric.description}")
