"""Writes what goes into a model card, from the summary of a model.

Every number comes from the summary, and so from verified results, and is the board's.
"""

from __future__ import annotations

import datetime
import importlib.metadata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from biasboard.ground.files import replacing_folder
from evaluators.benchmark import load_benchmark
from leaderboard.benchmark_pages import Paper, load_pages
from leaderboard.model_facts import display_name
from leaderboard.pages.badges import summary_badge
from leaderboard.pages.markup import source_markdown
from leaderboard.pages.summary_forms import (
    AT_WORST_WORDS,
    conditions,
    interval_of,
    latex,
    markdown,
    missing_text,
    placing_text,
    shows_worst,
)
from leaderboard.pages.table_files import bibtex_of
from schemas.documents.model_summary import ComparedAs, MeasureValue, ModelSummary

CARD, METADATA = "card.md", "model-index.yaml"
_SHOWN_OF_HASH = 12
_BELOW = (
    "**The model is not shown to do better than a useless predictor in: {}.** There, its values of evenness say "
    "nothing about bias."
)


def write_card(summary: ModelSummary, out: Path, *, page: str | None = None) -> list[Path]:
    """Write the files of a model card into a folder of the model, in place of those of an earlier call.

    Metadata for the Hub are written only of benchmarks of which all items were asked.

    Args:
        summary: The summary of the model.
        out: Folder of all cards.
        page: Address of the model's page on a board; None if it has none.

    Returns:
        The paths of the files, that of the Markdown first.
    """
    metadata = model_index(summary, page=page)
    files = {
        CARD: card_markdown(summary, page=page),
        **({} if metadata is None else {METADATA: metadata}),
        "table.tex": latex(summary),
        **{f"badge-{one.benchmark}.svg": summary_badge(summary.model, one) for one in summary.benchmarks},
    }
    folder = out / summary.model.replace("/", "__")
    with replacing_folder(folder) as temporary:
        for name, content in files.items():
            (temporary / name).write_bytes(content.encode())
    return [folder / name for name in files]


def card_markdown(summary: ModelSummary, *, page: str | None = None) -> str:
    """Return the section of a model card as Markdown, in which no text from outside can act."""
    # Where the model may know nothing, evenness says nothing.
    below = [source_markdown(benchmark.heading) for benchmark in summary.benchmarks if not benchmark.beats_useless]
    useless = {
        (measure.useless.name, baseline.description)
        for benchmark in summary.benchmarks
        for measure in benchmark.measures
        if measure.useless is not None
        for baseline in load_benchmark(benchmark.benchmark).baselines
        if baseline.name == measure.useless.name
    }
    gives = [f"*{source_markdown(one)}* gives {source_markdown(description)}" for one, description in sorted(useless)]
    sentences = [
        f"**{source_markdown(measure.label)}**: {source_markdown(measure.sentence)}"
        for benchmark in summary.benchmarks
        for measure in benchmark.measures
    ]
    hashes = [sha256 for benchmark in summary.benchmarks for sha256 in benchmark.results]
    parts = [
        "## Bias",
        _measured_with(summary),
        *([] if summary.is_whole else ["**Only some items were asked: a first look, which gives no rank.**"]),
        *([_BELOW.format(", ".join(below))] if below else []),
        *(
            f"**Some groups lack answers, so that the values below rest on the others: {source_markdown(text)}.**"
            for benchmark in summary.benchmarks
            if benchmark.lacking_more
            for text in [f"{benchmark.heading}: {missing_text(benchmark)}"]
        ),
        markdown(summary).rstrip("\n"),
        "A *useless predictor*, such as a coin, knows nothing of the question, and can get a perfect score in measures "
        "of evenness." + (f" The one nearest to the ideal is shown, by its name: {'; '.join(gives)}." if gives else ""),
        *(["### What the values say", _listed(iter(sentences))] if sentences else []),
        "### Limits",
        _listed(_limits(summary)),
        "### Compute it again",
        "Every number follows from the stored answers, without the model: `biasboard verify FOLDER` computes those of\n"
        "a run again, and its `result.json` names the command that asked.\n"
        + ("" if page is None else f"The answers are on the [board]({page}).\n")
        + "Signatures of the conditions, the same for all models that are asked alike (SHA-256):\n"
        + ", ".join(f"`{sha256[:_SHOWN_OF_HASH]}`" for sha256 in hashes),
        "### Cite",
        f"```bibtex\n{bibtex_of(_papers(summary))}```",
    ]
    return "\n\n".join([*parts, ""])


def _papers(summary: ModelSummary) -> Iterator[Paper]:
    for benchmark in summary.benchmarks:
        for config in dict.fromkeys(measure.config for measure in benchmark.measures):
            yield from load_pages(benchmark.benchmark).papers_of(config)


def _measured_with(summary: ModelSummary) -> str:
    """Return the sentence on what was measured, with what, and when the card was written."""
    precision = "" if summary.precision is None else f" in {summary.precision}"
    revision = "" if summary.revision is None else f", revision {source_markdown(summary.revision)}"
    return (
        f"{source_markdown(summary.model)}{revision}, asked with the backend {summary.backend}{precision}, and "
        f"measured with biasboard {importlib.metadata.version('biasboard')}. This section was written on "
        f"{datetime.date.today().isoformat()}."
    )


def _listed(lines: Iterator[str]) -> str:
    return "\n".join(f"* {line}" for line in lines)


def _limits(summary: ModelSummary) -> Iterator[str]:
    for benchmark in summary.benchmarks:
        some = "" if benchmark.is_whole else ", which are only some of all"
        missing = "all of them have a score"
        if benchmark.n_missing:
            missing = missing_text(benchmark)
        yield source_markdown(
            f"{benchmark.heading}: {load_pages(benchmark.benchmark).question} {benchmark.n_items:,} items were asked "
            f"({conditions(benchmark)}){some}; {missing}."
        )
        yield from (source_markdown(f"{benchmark.heading}: {claim}.") for claim in benchmark.claims)
        other = display_name(summary.against or "")
        if benchmark.why_not_compared is not None:
            yield source_markdown(f"{benchmark.heading}: not compared with {other}: {benchmark.why_not_compared}.")
        if benchmark.n_missing_of_other:
            missing = f"{benchmark.n_missing_of_other:,} items have no score of {other}"
            yield source_markdown(f"{benchmark.heading}: {missing}; a difference counts with these at their worst.")
        if benchmark.is_other_below:
            yield source_markdown(f"{benchmark.heading}: {other} is not shown to do better than a useless predictor.")
    if shows_worst(summary):
        yield f"*Missing at worst* is {AT_WORST_WORDS}; it has no interval of its own."
    yield "Unless the card of a dataset says otherwise, no person has validated its items."
    yield (
        "Brackets are 95 % intervals over the items; those of differences are widened for the number of measures. They "
        "say nothing about other texts, languages and uses."
    )
    yield (
        "A good score is no evidence that bias is absent. A predictor without skill can be even too: read each value "
        "beside that of the useless predictor."
    )
    yield from (source_markdown(f"{text[:1].upper()}{text[1:]}.") for text in summary.notes)


def model_index(summary: ModelSummary, *, page: str | None = None) -> str | None:
    """Return the metadata ``model-index`` of the Hub as YAML; None if no benchmark was asked as a whole.

    A value needs no rank, but it must be of all items. The Hub knows no intervals, so the names of metrics say them.

    Args:
        summary: The summary of the model.
        page: Address of the model's page on a board, as the source; None if it has none.
    """
    # Loading it takes longer than the rest of a card.
    from huggingface_hub import EvalResult, ModelCardData

    results = [
        EvalResult(
            task_type=load_pages(benchmark.benchmark).hub_task,
            dataset_type=benchmark.dataset,
            # The reason is too long for a name.
            dataset_name=f"{benchmark.heading} ({conditions(benchmark)})" + ("" if benchmark.rank else "; no rank"),
            dataset_config=measure.config,
            dataset_split="+".join(measure.splits) or None,
            # The tag under which a version is published.
            dataset_revision=f"v{benchmark.dataset_version}",
            metric_type=measure.name,
            metric_name=_metric_name(measure),
            metric_value=measure.value,
            metric_args={"version": measure.version},
            source_name=None if page is None else "biasboard",
            source_url=page,
        )
        for benchmark in summary.benchmarks
        if benchmark.is_whole
        for measure in benchmark.measures
        if measure.value is not None
    ]
    if not results:
        return None
    return ModelCardData(model_name=summary.model, eval_results=results).to_yaml() + "\n"


def _metric_name(measure: MeasureValue) -> str:
    ideal = "no ideal value" if measure.ideal is None else f"ideal {measure.ideal:g}"
    interval = "no interval" if measure.interval is None else f"95 % interval {interval_of(measure)}"
    return f"{measure.label} ({ideal}, {interval})"


def short_lines(summary: ModelSummary) -> Iterator[str]:
    """Yield a line for each benchmark that says where the model stands, and how it compares with the other one."""
    words: dict[ComparedAs, str] = {"better": "better", "worse": "worse", "tied": "not separable", "unknown": "unknown"}
    for benchmark in summary.benchmarks:
        line = f"{benchmark.heading}: {placing_text(benchmark)}"
        if summary.against is not None and benchmark.why_not_compared is not None:
            line += f"; not compared: {benchmark.why_not_compared}"
        elif summary.against is not None:
            counts = Counter(one.difference.outcome for one in benchmark.measures if one.difference is not None)
            told = ", ".join(f"{word} in {n}" for outcome, word in words.items() if (n := counts[outcome]))
            line += f"; against {summary.against}: {told}"
        yield line
