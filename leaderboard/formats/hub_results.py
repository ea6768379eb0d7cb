"""Exports results as evaluation results of model repositories on the Hugging Face Hub.

A file ``.eval_results/<dataset>.yaml`` in the repository of a model lists one value for each task of the dataset. The
Hub ranks models by that value, and knows neither intervals nor gates, so only results that this board would rank are
exported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from biasboard.ground.files import replacing
from evaluators.benchmark import load_benchmark
from leaderboard.benchmark_pages import load_pages
from leaderboard.ranking.rank_ranges import Gates, why_unranked
from leaderboard.result_format import Addresses, ResultFormat, VerifiedResult
from schemas.documents.result import Metric


def _refused(results: Sequence[VerifiedResult]) -> Mapping[Path, str]:
    """Return the reason for each result that the board would not rank, or that is of no single task."""
    gates = Gates([verified.entry for verified in results])
    reasons = {}
    firsts: dict[tuple[str, str], Path] = {}
    for verified in results:
        reason = _why_refused(verified, gates)
        if reason is None:
            first = firsts.setdefault((verified.result.model.id, verified.result.signature.config), verified.folder)
            if first != verified.folder:
                reason = f"{first} is of the same model and task, and the Hub takes one value; name one of them"
        if reason is not None:
            reasons[verified.folder] = reason
    return reasons


def _write(results: Sequence[VerifiedResult], addresses: Addresses, out: Path) -> Iterator[Path]:
    """Write one file for each model and dataset, with one value for each config, as the library of the Hub does."""
    # Loading it takes longer than the rest of an export.
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    files: dict[Path, list[EvalResultEntry]] = {}
    for verified in results:
        metric, signature = _ranking_metric(verified), verified.result.signature
        assert metric is not None, "such results are refused"
        entry = EvalResultEntry(
            dataset_id=str(addresses.dataset_repo),
            task_id=signature.config,
            value=metric.value,
            dataset_revision=addresses.dataset_revision,
            date=None if verified.submission is None else verified.submission.run_date,
            source_url=verified.permalink(addresses),
            notes=_notes(verified, metric),
        )
        folder = out / verified.result.model.id.replace("/", "__") / ".eval_results"
        files.setdefault(folder / f"{signature.dataset}.yaml", []).append(entry)
    for path, entries in files.items():
        listed = eval_result_entries_to_yaml(sorted(entries, key=lambda entry: entry.task_id))
        with replacing(path) as temporary:
            text = yaml.safe_dump(listed, sort_keys=False, allow_unicode=True, width=1000)
            temporary.write_text(text, encoding="utf-8")
        yield path


def _why_refused(verified: VerifiedResult, gates: Gates) -> str | None:
    signature, model = verified.result.signature, verified.result.model
    if (reason := why_unranked(verified.entry)) is not None:
        return f"has no rank: {reason}"
    if "/" not in model.id:
        return f"model '{model.id}' has no repository on the Hub, which is called ORG/NAME"
    if signature.parts or len(signature.splits) != 1:
        return "a task of the Hub is one config and one split, and this result is of several"
    metric = _ranking_metric(verified)
    if metric is None:
        return f"benchmark {signature.benchmark} names no single metric that ranks task {signature.task}"
    if metric.value is None:
        return f"{metric.name} has no value: {metric.reason}"
    shut = gates.why_shut(verified.entry)
    return None if shut is None else f"has no rank: {shut}"


def _ranking_metric(verified: VerifiedResult) -> Metric | None:
    """Return the metric of a result that ranks models.

    It is the primary metric of the benchmark. If an index ranks the models instead, it is the only metric of the result
    that the index averages; None if there are several or none.
    """
    benchmark, signature = load_benchmark(verified.result.signature.benchmark), verified.result.signature
    if benchmark.primary_metric is not None:
        return verified.metric(benchmark.primary_metric)
    parts = benchmark.indices[0].parts if benchmark.indices else ()
    names = [part.metric for part in parts if part.source.fits(signature)]
    return verified.metric(names[0]) if len(names) == 1 else None


def _notes(verified: VerifiedResult, metric: Metric) -> str:
    """Return what the value is and how certain, since the format has no fields for it."""
    signature, interval = verified.result.signature, metric.interval
    ideal = "no ideal value" if metric.ideal is None else f"ideal {metric.ideal:g}"
    mode = signature.scoring if signature.normalisation is None else f"{signature.scoring}, {signature.normalisation}"
    notes = [
        f"{load_pages(signature.benchmark).label(metric.name)} ({metric.name} {metric.version}, {ideal})",
        f"n = {metric.n} {metric.unit}",
        f"scoring {mode}, prompt {signature.prompt}",
        f"dataset version {signature.dataset_version}",
    ]
    if interval is not None:
        notes.insert(1, f"{interval.level:.0%} interval [{interval.low:.4f}, {interval.high:.4f}] ({interval.method})")
    return "; ".join(notes)


FORMAT = ResultFormat(write=_write, refused=_refused, why_dataset_repo="the Hub files results under a dataset")
