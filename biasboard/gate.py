"""Gates for releases: limits that the headline measures of a model must keep, decided with doubt against the model.

A measure passes a limit if its interval, with all missing answers at their worst, lies within it, and a comparison if
that of the difference does. What cannot be decided, such as an unknown value or one of a few items, does not pass.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from biasboard.ground.errors import ConfigError
from biasboard.ground.options import names_in, option
from schemas.documents.model_summary import BenchmarkSummary, GateOutcome, MeasureValue, ModelSummary

_PANEL = "Gate"
_FEWEST = 30
"""Number of units from which an interval is trusted: those of fewer are often too narrow."""
_ROUNDING = 1e-12
_LIMITED, EARLIER, SEVERAL, _USELESS = _ALLOWED = ("limited", "earlier", "several", "useless")
"""What does not decide unless the user allows it."""
_LETS_USELESS = f"what a coin gets too says nothing, unless --allow {_USELESS} lets it decide"
_NOT_MEASURED = "nothing was measured"
_REMEDIES = {
    EARLIER: f"ask again with a new folder for --out, or add --allow {EARLIER} if it is the same model",
    SEVERAL: f"ask again with a new folder for --out, or add --allow {SEVERAL} if both names mean one model",
}
_OF_SOME = f"only some items were asked; ask all, or add --allow {_LIMITED}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateChoice:
    """The limits, and what may decide."""

    fail_under: tuple[str, ...] = option(
        "MEASURE=VALUE: end with status 4 if the measure may be farther from its ideal than the value, by its interval "
        "and with missing answers at their worst. Repeatable; BENCHMARK.MEASURE=VALUE if several benchmarks are asked. "
        "Any measure of a benchmark on all items; the table shows those that are named.",
        panel=_PANEL,
        default=(),
    )
    max_missing: float | None = option(
        "Largest share of the items of a benchmark, or of a group that lacks clearly more than others, that may have "
        "no score; with more, end with status 4.",
        panel=_PANEL,
        min=0,
        max=1,
    )
    max_worse: tuple[str, ...] = option(
        "VALUE or MEASURE=VALUE: largest amount by which each measure, or that one, may be worse than that of "
        "--against, by the interval of the difference and with missing answers at their worst; with more, or if it "
        "cannot be compared, end with status 4. Repeatable; only the named measures, if no VALUE stands alone.",
        panel=_PANEL,
        default=(),
    )
    point: bool | None = option("Let the value decide and not the far end of its interval.", panel=_PANEL)
    allow: tuple[str, ...] | None = option(
        f"What may decide all the same, separated by commas: {_LIMITED} (runs that asked only some items, and measures "
        f"of fewer than {_FEWEST} units), {EARLIER} (an endpoint's answers of earlier calls), {SEVERAL} (answers that "
        f"an endpoint gave in the names of several models), {_USELESS} (values of a "
        "model that is not shown to beat a useless predictor, which is even too).",
        panel=_PANEL,
        read=names_in,
    )

    def allows(self, what: str) -> bool:
        """Return True if the user lets something decide that otherwise does not."""
        return what in (self.allow or ())


@dataclass(frozen=True)
class Limit:
    """A value of ``--fail-under``."""

    text: str
    benchmark: str
    measure: str
    value: float


def limits_of(choice: GateChoice, benchmarks: Sequence[str]) -> list[Limit]:
    """Return the limits, after checking that they name measures, and can be kept and broken.

    Args:
        choice: The user's limits.
        benchmarks: The benchmarks to be asked.

    Raises:
        ConfigError: a limit is not MEASURE=VALUE, or names no measure or several.
    """
    # Imported here, because a score without limits needs none of it until the end.
    from leaderboard.benchmark_pages import load_pages

    have = dict.fromkeys((name, one.name) for name in benchmarks for one in load_pages(name).headlines)
    has_gate = choice.fail_under or choice.max_missing is not None or choice.max_worse
    for name in choice.allow or ():
        if name not in _ALLOWED:
            near = get_close_matches(name, _ALLOWED, n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"--allow {name}: can be {', '.join(_ALLOWED)}{meant}")
    if (choice.point or choice.allow) and not has_gate:
        raise ConfigError("--point and --allow: there is no gate; give --fail-under, --max-missing or --max-worse too")
    for measure in worse_limits(choice):
        if measure is not None and measure not in {name for pair in have for name in (pair[1], ".".join(pair))}:
            near = get_close_matches(measure, dict.fromkeys(one for _, one in have), n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(
                f"--max-worse {measure}: only headlines are compared: {', '.join(map('.'.join, have))}{meant}"
            )
    limits = []
    for text in choice.fail_under:
        name, _, number = text.partition("=")
        benchmark, _, measure = name.rpartition(".")
        try:
            value = float(number)
            if not math.isfinite(value):
                raise ValueError
        except ValueError:
            such_as = next(f"{owner}.{one}=0.7" for owner, one in have)
            raise ConfigError(f"--fail-under {text}: write MEASURE=VALUE, such as {such_as}") from None
        owners = [owner for owner, one in have if one == measure and benchmark in ("", owner)]
        if benchmark and benchmark not in benchmarks:
            raise ConfigError(f"--fail-under {text}: {benchmark} is not asked, only {', '.join(benchmarks)}")
        if len(owners) > 1:
            names = " or ".join(f"{owner}.{measure}" for owner in owners)
            raise ConfigError(f"--fail-under {text}: several benchmarks have this measure; write {names}")
        # The table has the headlines, and any other measure that a gate names.
        named = benchmark or (benchmarks[0] if len(benchmarks) == 1 else "")
        limit = Limit(text, owners[0] if owners else named, measure, value)
        is_known = _check_range(limit)
        if not owners and not is_known and measure not in {one for _, one in have}:
            near = get_close_matches(measure, dict.fromkeys(one for _, one in have), n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            headlines = ", ".join(f"{owner}.{one}" for owner, one in have)
            raise ConfigError(f"--fail-under {text}: no such measure; the headlines are {headlines}{meant}")
        if not limit.benchmark:
            raise ConfigError(f"--fail-under {text}: of which benchmark? Write {benchmarks[0]}.{measure}, for instance")
        limits.append(limit)
    return limits


def _check_range(limit: Limit) -> bool:
    """Refuse a limit outside the range of its metric, as 70 where .7 is meant, and one that every value keeps.

    True if there is such a metric; an index has no definition.
    """
    # Imported here, because a score without limits needs none of it.
    from biasboard.ground.kinds import TASKS
    from evaluators.runs.measure.measuring import metric_definitions

    known = (one for task in TASKS.names() for one in metric_definitions(task) if one.name == limit.measure)
    if (metric := next(known, None)) is None:
        return False
    low, high = metric.minimum, metric.maximum
    if limit.value < low or (high is not None and limit.value > high):
        between = f"{low:g} or more" if high is None else f"between {low:g} and {high:g}"
        raise ConfigError(f"--fail-under {limit.text}: the measure lies {between}; give such a value")
    # Some ideals depend on the items.
    if high is None or metric.ideal is None or callable(metric.ideal):
        return True
    if abs(limit.value - metric.ideal) >= max(abs(low - metric.ideal), abs(high - metric.ideal)):
        nearer = f"give one nearer to the ideal {metric.ideal:g}"
        raise ConfigError(f"--fail-under {limit.text}: every value keeps this limit; {nearer}")
    return True


def check_asked(
    limits: Sequence[Limit], choice: GateChoice, benchmarks: Sequence[str], asked: Mapping[str, Collection[str]]
) -> None:
    """Refuse, before anything is asked, gates that could only fail.

    Args:
        limits: The limits.
        choice: The user's choices.
        benchmarks: The benchmarks that were to be asked.
        asked: Those of them that the model can be asked, with the names of their measures.

    Raises:
        ConfigError: a gate needs a benchmark that is not asked, or a measure that it does not have.
    """
    of_all = {"--max-missing": choice.max_missing is not None, "--max-worse": bool(choice.max_worse)}
    gates = {flag: set(benchmarks) for flag, is_given in of_all.items() if is_given}
    gates |= {f"--fail-under {limit.text}": {limit.benchmark} for limit in limits}
    for gate, needed in gates.items():
        if lacking := [name for name in benchmarks if name in needed.difference(asked)]:
            raise ConfigError(
                f"{gate}: {' and '.join(lacking)} cannot be asked, as said above; another --prompt may fit, or leave "
                f"it out: --benchmarks {','.join(asked)}"
            )
    for limit in limits:
        if limit.measure not in asked[limit.benchmark]:
            raise ConfigError(f"--fail-under {limit.text}: {limit.benchmark} has no such measure as it is asked here")


def outcomes(
    summary: ModelSummary,
    limits: Sequence[Limit],
    choice: GateChoice,
    benchmarks: Sequence[str],
    *,
    doubts: Mapping[str, str] | None = None,
    same_as: str | None = None,
) -> Iterator[GateOutcome]:
    """Yield what becomes of each gate: limits in their order, missing answers by benchmark, then comparisons.

    Args:
        summary: What was measured.
        limits: The limits.
        choice: The user's choices.
        benchmarks: The benchmarks that were asked; a limit on one without values does not pass.
        doubts: Why answers of an endpoint may be of several models, by what the user would have to allow.
        same_as: Name of the model to compare with, if it has the same weights and settings: nothing can be worse.
    """
    told = doubts or {}
    warnings = tuple(why for what, why in told.items() if choice.allows(what))
    refused = [f"{why}; {_REMEDIES[what]}" for what, why in told.items() if not choice.allows(what)]
    for outcome in _outcomes(summary, limits, choice, benchmarks, same_as):
        if refused:
            # Also of a gate that fails for another reason: nobody should have to try once for each.
            reason = "; ".join(filter(None, (outcome.reason, *refused)))
            yield replace(outcome, passed=False, reason=reason, decided_by=None)
        else:
            yield replace(outcome, warnings=(*outcome.warnings, *warnings))


def outcome_lines(outcomes: Sequence[GateOutcome]) -> Iterator[str]:
    """Yield a line for each gate, one for each thing to know of those that were passed, and how many failed."""
    for one in outcomes:
        yield f"gate {one.gate}: {'passed' if one.passed else 'FAILED'}: {one.reason or _decided_by(one)}"
    yield from (f"warning: {line}" for line in dict.fromkeys(line for one in outcomes for line in one.warnings))
    n_failed = sum(not one.passed for one in outcomes)
    yield f"gates: {n_failed} of {len(outcomes)} failed" if n_failed else f"gates: all {len(outcomes)} passed"


def _decided_by(outcome: GateOutcome) -> str:
    value = outcome.decided_by or 0.0
    if outcome.compared_with is None:
        return f"decided by {round(value, 4) + 0.0:.4f}"
    if round(value, 4) == 0:
        return "not worse"
    return f"worse by at most {value:.4f}" if value > 0 else f"better by at least {abs(value):.4f}"


def _outcomes(
    summary: ModelSummary,
    limits: Sequence[Limit],
    choice: GateChoice,
    benchmarks: Sequence[str],
    same_as: str | None,
) -> Iterator[GateOutcome]:
    of_name = {benchmark.benchmark: benchmark for benchmark in summary.benchmarks}
    for limit in limits:
        own = of_name.get(limit.benchmark)
        found = next((one for one in own.measures if one.name == limit.measure), None) if own else None
        value, reason = _decided(limit, own, found, choice)
        given = None if found is None else found.value
        outcome = _outcome(limit.text, limit.benchmark, limit.measure, limit.value, given, value, reason)
        yield outcome if own is None or reason is not None else replace(outcome, warnings=tuple(_doubts(limit, own)))
    for name in benchmarks if choice.max_missing is not None else ():
        most = choice.max_missing or 0.0
        share, decided_by, reason = _missing(of_name.get(name), choice)
        yield _outcome(f"{name}.max_missing={most:g}", name, None, most, share, decided_by, reason)
    for name in benchmarks if choice.max_worse else ():
        own = of_name.get(name)
        if same_as is not None:
            least = min(worse_limits(choice).values())
            outcome = _outcome(_worse_gate(name, same_as, least), name, None, least, 0.0, 0.0, None)
            same = f"{same_as} has the weights and settings of this model, so that nothing can be worse"
            yield replace(outcome, compared_with=same_as, warnings=(same,))
            continue
        for measure, most, value, decided_by, reason in _worse_by(name, own, summary.against or "", choice):
            whose = name if measure is None else f"{name}.{measure}"
            gate = _worse_gate(whose, summary.against or "", most)
            doubts = () if own is None or own.beats_useless or reason is not None else (_no_skill(own),)
            outcome = _outcome(gate, name, measure, most, value, decided_by, reason)
            yield replace(outcome, compared_with=summary.against, warnings=doubts)


def _worse_gate(whose: str, against: str, most: float) -> str:
    return f"{whose} worse than {against} by at most {most:g}"


def _missing(benchmark: BenchmarkSummary | None, choice: GateChoice) -> tuple[float | None, float | None, str | None]:
    """Return the share of items without a score, that of all or of a group that decides, and why it is too much.

    Refusing those alone who are a tenth of the items would otherwise pass any limit that is not tiny.
    """
    if benchmark is None:
        return None, None, _NOT_MEASURED
    most = choice.max_missing or 0.0
    shares = [(benchmark.n_missing, benchmark.n_items, "items")]
    for one in benchmark.lacking_more:
        shares.append((one.n_missing, one.n_items, f"items with {one.name} {one.value} in {one.config}"))
    n_missing, n_items, which = max(shares, key=lambda of: of[0] / of[1])
    share = n_missing / n_items
    reason = None if share <= most else f"{n_missing:,} of {n_items:,} {which} ({share:.1%}) have no score"
    if reason is not None:
        reason += f", more than {most:.1%}"
    if not benchmark.is_whole and not choice.allows(_LIMITED):
        return benchmark.n_missing / benchmark.n_items, None, "; ".join(filter(None, (reason, _OF_SOME)))
    return benchmark.n_missing / benchmark.n_items, share, reason


def _outcome(
    gate: str,
    benchmark: str,
    measure: str | None,
    limit: float,
    value: float | None,
    decided_by: float | None,
    reason: str | None,
) -> GateOutcome:
    return GateOutcome(
        gate=gate,
        benchmark=benchmark,
        measure=measure,
        limit=limit,
        passed=reason is None,
        value=value,
        decided_by=decided_by,
        reason=reason,
    )


def worse_limits(choice: GateChoice) -> dict[str | None, float]:
    """Return the values of ``--max-worse`` by the measure that each names; None for all others.

    Raises:
        ConfigError: a value is no number of 0 or more.
    """
    limits: dict[str | None, float] = {}
    for text in choice.max_worse:
        measure, equals, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if not math.isfinite(value) or value < 0 or (equals and not measure):
            raise ConfigError(f"--max-worse {text}: write VALUE or MEASURE=VALUE, with a value of 0 or more")
        limits[measure or None] = value
    return limits


def _worse_by(
    name: str, benchmark: BenchmarkSummary | None, against: str, choice: GateChoice
) -> Iterator[tuple[str | None, float, float | None, float | None, str | None]]:
    """Yield of each measure its limit, by how much it is worse than that of another model and may be, and why not."""
    limits = worse_limits(choice)

    def limit_of(measure: str) -> float | None:
        return limits.get(f"{name}.{measure}", limits.get(measure, limits.get(None)))

    least = min(limits.values())
    if benchmark is None:
        yield None, least, None, None, _NOT_MEASURED
        return
    compared = [(one.name, one.difference) for one in benchmark.measures if one.difference is not None]
    why_not = None if compared else benchmark.why_not_compared or "no measure has a value of both"
    if not benchmark.is_whole and not choice.allows(_LIMITED):
        why_not = "; ".join(filter(None, (why_not, _OF_SOME)))
    if why_not is not None:
        yield None, least, None, None, why_not
        return
    seen = {*benchmark.not_measured, *(measure for measure, _ in compared)}
    for text in filter(None, limits):
        owner, _, measure = text.rpartition(".")
        if owner in ("", name) and measure not in seen:
            yield measure, limits[text], None, None, f"it has no value of both the model and {against}"
    for measure in benchmark.not_measured:
        if (most := limit_of(measure)) is not None:
            yield measure, most, None, None, f"it has a value of {against} alone"
    for measure, difference in compared:
        if (most := limit_of(measure)) is None:
            continue
        low = difference.lead if choice.point else difference.low
        # How much farther from the ideal the model may be, if it answers as badly as it can where it did not.
        # An item that neither answers has the same outcome with both.
        missing = min(0.0, difference.lead_at_worst - difference.lead) * (1 - difference.missing_alike)
        value = None if low is None else 0.0 - (low + missing)
        reason = None
        if value is None:
            reason = "the interval of the difference is unknown; add --point to let the difference decide"
        elif value > most + _ROUNDING:
            doubt = [] if choice.point else ["by the interval of the difference"]
            doubt += ["with missing answers at their worst"] if missing else []
            lead = f"nearer to the ideal by {difference.lead:.4f}, and may be" if difference.lead > 0 else "may be"
            reason = f"{lead} worse by {value:.4f}{' ' if doubt else ''}{' and '.join(doubt)}"
        elif not benchmark.beats_useless and not choice.allows(_USELESS):
            value, reason = None, _not_useful(benchmark)
        yield measure, most, 0.0 - difference.lead, value, reason


def _decided(
    limit: Limit, benchmark: BenchmarkSummary | None, measure: MeasureValue | None, choice: GateChoice
) -> tuple[float | None, str | None]:
    """Return the number that decides, if one does, and why the gate is not passed; None if it is."""
    if benchmark is None or measure is None:
        return None, f"{limit.benchmark}.{limit.measure} was not measured"
    name = f"{benchmark.benchmark}.{measure.name}"
    if measure.value is None or measure.ideal is None:
        return None, f"{name} is unknown: {measure.reason or 'it has no ideal'}"
    if measure.at_worst is None:
        return None, f"{name} has no bound, and {benchmark.n_missing:,} of {benchmark.n_items:,} items have no score"
    if not benchmark.is_whole and not choice.allows(_LIMITED):
        useless = [] if benchmark.beats_useless or choice.allows(_USELESS) else [_not_useful(benchmark)]
        return None, "; ".join([f"{name}: {_OF_SOME}", *useless])
    # An index is a mean of few measures, each of many units.
    if measure.n < _FEWEST and measure.config is not None and not choice.allows(_LIMITED):
        few = f"rests on {measure.n} {measure.unit}, fewer than {_FEWEST}"
        return None, f"{name} {few}; ask more, or add --allow {_LIMITED}"
    if measure.interval is None and not choice.point:
        return None, f"{name} has no interval; add --point to let its value decide"
    if not benchmark.is_whole and _is_alike(measure) and not choice.point:
        return (
            None,
            f"{name} has no interval, because no cluster of these few items changes it; ask all, or add --point",
        )
    if not benchmark.beats_useless and not choice.allows(_USELESS):
        return None, _not_useful(benchmark)
    value = _farthest(measure, point=bool(choice.point))
    if abs(value - measure.ideal) <= abs(limit.value - measure.ideal) + _ROUNDING:
        return value, None
    doubt = [] if choice.point or value == measure.value else ["by its interval"]
    doubt += ["with missing answers at their worst"] if measure.at_worst != measure.value else []
    may_be = f" and may be {value:.4f} {' and '.join(doubt)}" if doubt else ""
    return value, f"{name} is {measure.value:.4f}{may_be}, farther from {measure.ideal:g} than {limit.value:g}"


def _doubts(limit: Limit, benchmark: BenchmarkSummary) -> Iterator[str]:
    """Yield what to know of a gate that was passed."""
    if not benchmark.is_whole:
        yield f"of {benchmark.benchmark} only some items were asked"
    if not benchmark.beats_useless:
        yield _no_skill(benchmark)
    for measure in benchmark.measures:
        if measure.name == limit.measure and _is_alike(measure):
            name = f"{benchmark.benchmark}.{measure.name}"
            yield f"{name} has no interval, because no cluster of items changes it: its value alone decided"


def _no_skill(benchmark: BenchmarkSummary) -> str:
    why = "" if benchmark.why_below is None else f": {benchmark.why_below}"
    return f"on {benchmark.benchmark} the model is not shown to beat a useless predictor{why}"


def _not_useful(benchmark: BenchmarkSummary) -> str:
    # Why, the table says: this line may stand at each measure.
    return f"on {benchmark.benchmark} the model is not shown to beat a useless predictor; {_LETS_USELESS}"


def _is_alike(measure: MeasureValue) -> bool:
    return measure.interval is not None and measure.interval.low == measure.interval.high


def _farthest(measure: MeasureValue, *, point: bool) -> float:
    """Return the value of a measure farthest from its ideal that the interval and the missing answers leave open."""
    value, ideal, worst = measure.value or 0.0, measure.ideal or 0.0, measure.at_worst or 0.0
    ends = (value,) if point or measure.interval is None else (measure.interval.low, measure.interval.high)
    # Missing answers move the whole interval, within the range of the measure.
    moved = (end + by for end in ends for by in (0.0, worst - value))
    high = float("inf") if measure.maximum is None else measure.maximum
    return max((min(max(one, measure.minimum), high) for one in moved), key=lambda one: abs(one - ideal))
