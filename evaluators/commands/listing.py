"""The command ``python -m evaluators list``: prints all plug-ins."""

from __future__ import annotations

from collections.abc import Iterator

from biasboard.ground.command_line import one_line_errors
from evaluators.backend import BACKENDS
from evaluators.benchmark import benchmarks
from evaluators.harness import harness_names, load_harness
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.scorer import SCORERS
from evaluators.task import TASKS, Task, load_task


@one_line_errors()
def list_command() -> None:
    """List benchmarks with their baselines, backends, scorers, harnesses, tasks, prompts and metrics."""
    for benchmark in benchmarks():
        print(f"benchmark {benchmark.name}")
        for baseline in benchmark.baselines:
            print(f"  baseline {baseline.name}: {baseline.description}")
        for index in benchmark.indices:
            print(f"  index {index.name}: {index.description}")
    for name in BACKENDS.names():
        module = BACKENDS.load(name)
        extra = "" if module.EXTRA is None else f" (extra: {module.EXTRA})"
        print(f"backend {name}: {module.SUMMARY}{extra}")
    for name in SCORERS.names():
        module = SCORERS.load(name)
        print(f"scorer {name}: {module.SUMMARY}")
        for kind in module.KINDS:
            print(f"  kind {kind}")
    for name in harness_names():
        print(f"harness {name}: {load_harness(name).summary}")
    for name in TASKS.names():
        task = load_task(name)
        print(f"task {name} {task.version}: asks about items of shape {task.item_shape}")
        for line in _prompt_lines(task):
            print(f"  {line}")
        for metric in metric_definitions(name):
            print(f"  metric {metric.name} {metric.version}: {metric.description}")


def _prompt_lines(task: Task) -> Iterator[str]:
    """Yield a line for each prompt; prompts of a protocol that differ only in their examples share a line."""
    listed: set[str | None] = set()
    for prompt in task.prompts.values():
        if prompt.n_examples is None:
            yield f"prompt {prompt.id}: {prompt.description}"
        elif prompt.protocol not in listed:
            listed.add(prompt.protocol)
            same = [other.id for other in task.prompts.values() if other.protocol == prompt.protocol]
            names = same[0] if len(same) == 1 else f"{len(same)} prompts, {same[0]} to {same[-1]}"
            yield f"protocol {prompt.protocol}: {names}; the first: {prompt.description}"
