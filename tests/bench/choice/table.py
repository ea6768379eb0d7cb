"""What was measured, as a table, and what it must show."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tests.bench.choice.engines import OURS, Scores
from tests.bench.choice.rounds import GROUPS, Lane, Results, Timed
from tests.bench.choice.workload import TASKS, TaskName

TOLERANCE = 1e-4
"""Largest difference of a float32 log-probability from lm-eval's and from the reference."""
RATE_TARGETS: dict[tuple[str, TaskName], float] = {
    ("transformers packed", "multi-token"): 10.0,
    ("transformers packed", "one-token"): 3.0,
    ("vllm", "multi-token"): 2.0,
    ("vllm", "one-token"): 2.0,
}
"""Least requests per second, in those of lm-eval on the same engine, in float32."""
MEMORY_TARGET = 1.2
"""Most memory at the peak, in that of lm-eval."""
_LM_EVAL = GROUPS["float32"][0]


class Distance(NamedTuple):
    """How far two engines are from each other on the items that both scored."""

    largest: float
    """Difference of two log-probabilities."""
    n_other_decisions: int
    n_items: int


class Row(NamedTuple):
    """A line of the table."""

    lane: Lane
    task: TaskName
    base: Lane
    n_requests: int
    rate: float
    rate_ratio: float | None
    peak_mib: float
    peak_ratio: float | None
    above_model_mib: float
    above_model_ratio: float | None
    from_lm_eval: Distance | None
    from_reference: Distance | None
    settings: str


def rows_of(results: Results) -> list[Row]:
    """The table, in the order of the groups and tasks; a ratio is None where lm-eval did not run."""
    return [
        _row(results, lane, task, lanes[0])
        for lanes in GROUPS.values()
        for task in TASKS
        for lane in lanes
        if (lane, task) in results.timed
    ]


def _row(results: Results, lane: Lane, task: TaskName, base_lane: Lane) -> Row:
    timed = results.timed[lane, task]
    base = results.timed.get((base_lane, task))
    other = results.timed.get((_LM_EVAL, task))
    reference = results.reference.get(task)
    counts = [tuple(len(option.option) for option in options) for options in results.ids[task]]
    return Row(
        lane=lane,
        task=task,
        base=base_lane,
        n_requests=sum(len(scores) for measured in timed.rounds for scores in measured.scores),
        rate=statistics.median(timed.rates),
        rate_ratio=statistics.median(_ratios(timed, base)) if base else None,
        peak_mib=timed.peak_mib,
        peak_ratio=timed.peak_mib / base.peak_mib if base else None,
        above_model_mib=timed.peak_above_model_mib,
        above_model_ratio=timed.peak_above_model_mib / base.peak_above_model_mib if base else None,
        from_lm_eval=_distance(timed.scores, other.scores, counts[0]) if other and other is not timed else None,
        from_reference=_distance(timed.scores[:1], [reference], counts[0]) if reference else None,
        settings=timed.rounds[-1].settings,
    )


def _ratios(timed: Timed, base: Timed) -> list[float]:
    return [rate / other for rate, other in zip(timed.rates, base.rates, strict=True)]


def _distance(ours: Sequence[Sequence[Scores]], others: Sequence[Sequence[Scores]], counts: Sequence[int]) -> Distance:
    """Over the first items of each round, as many as both scored."""
    pairs = [pair for one, two in zip(ours, others, strict=True) for pair in zip(one, two, strict=False)]
    return Distance(
        # Of numpy, whose maximum is not a number where one of them is not.
        largest=float(np.max([abs(a - b) for one, two in pairs for a, b in zip(one, two, strict=True)])),
        n_other_decisions=sum(_decision(one, counts) != _decision(two, counts) for one, two in pairs),
        n_items=len(pairs),
    )


def _decision(scores: Scores, counts: Sequence[int]) -> int:
    """The option with the largest log-probability per token; by their sums the shortest would always win."""
    means = [score / count for score, count in zip(scores, counts, strict=True)]
    return means.index(max(means))


def faults(results: Results, rows: Sequence[Row]) -> list[str]:
    """Why the comparison does not hold; empty if it does."""
    found = [f"{lane.engine} ({lane.precision}) scored other token ids than lm-eval" for lane in results.other_ids]
    # Whether lm-eval runs on the engine is not ours to say.
    found += [
        f"{lane.engine} ({lane.precision}) did not run: {reason.splitlines()[0]}"
        for lane, reason in results.absent.items()
        if lane.engine != "lm-eval vllm"
    ]
    for row in rows:
        if row.lane.engine not in OURS or row.lane.precision != "float32":
            continue
        if row.from_lm_eval is None and (_LM_EVAL, row.task) in results.timed:
            found.append(f"{row.lane.engine}, {row.task}: it was not compared with {_LM_EVAL.engine}")
        for name, distance in (("lm-eval", row.from_lm_eval), ("the reference", row.from_reference)):
            # Not "larger than", which a NaN is not.
            if distance and not distance.largest <= TOLERANCE:
                found.append(
                    f"{row.lane.engine}, {row.task}: {distance.largest:.1e} from {name}, at most {TOLERANCE:.0e}"
                )
    return found


def targets(rows: Sequence[Row]) -> Iterator[tuple[str, bool]]:
    """What is aimed at, and whether it was reached."""
    for row in rows:
        least = RATE_TARGETS.get((row.lane.engine, row.task))
        if least is None or row.lane.precision != "float32" or row.rate_ratio is None or row.peak_ratio is None:
            continue
        name = f"{row.lane.engine}, {row.task}"
        yield (
            f"{name}: {row.rate_ratio:.1f} x the requests/s of {row.base.engine}, at least {least:g}",
            (row.rate_ratio >= least),
        )
        yield (
            f"{name}: {row.peak_ratio:.2f} x the peak memory of {row.base.engine}, at most {MEMORY_TARGET:g}",
            (row.peak_ratio <= MEMORY_TARGET),
        )


def table(rows: Sequence[Row]) -> str:
    """All rows as a Markdown table with aligned columns."""
    head = ["task", "precision", "engine", "requests", "req/s", "x lm-eval", "peak MiB", "x lm-eval"]
    head += ["above model MiB", "x lm-eval", "from lm-eval f32", "decisions", "from f64", "decisions", "settings"]
    cells = [head, ["---"] * len(head)]
    for row in rows:
        cells.append(
            [
                *(row.task, row.lane.precision, row.lane.engine, f"{row.n_requests:,}", f"{row.rate:,.1f}"),
                *(_times(row.rate_ratio), f"{row.peak_mib:,.0f}", _times(row.peak_ratio)),
                *(f"{row.above_model_mib:,.0f}", _times(row.above_model_ratio)),
                *_far(row.from_lm_eval),
                *_far(row.from_reference),
                row.settings,
            ]
        )
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
    return "\n".join(f"| {line} |" for line in lines)


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def _far(distance: Distance | None) -> tuple[str, str]:
    if distance is None:
        return "-", "-"
    return f"{distance.largest:.1e}", f"{distance.n_other_decisions}/{distance.n_items}"
