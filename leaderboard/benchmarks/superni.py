"""Describes the pages of the benchmark superni: label bias in classification after k examples."""

from __future__ import annotations

from statistics import fmean

from evaluators.benchmark import load_benchmark
from evaluators.calibrator import calibrations
from evaluators.task import Prompt
from evaluators.tasks.labels.label_measures import MEASURES, QUARTERS
from evaluators.tasks.labels.label_prompts import N_BALANCED, N_COMPARED, N_EXAMPLES, N_FREQUENT, label_prompts, rule_of
from evaluators.tasks.labels.metric_variants import METHODS, calibrated_measures, metric_headings
from evaluators.tasks.labels.superni_benchmark import calibrated_at, contexts_of, sets_suffix
from leaderboard.benchmark_figures import Curves, Shown
from leaderboard.benchmark_pages import (
    LEAST_MODELS,
    BenchmarkPages,
    Column,
    Example,
    Finding,
    Headline,
    Layout,
    Paper,
    Results,
    is_above,
    measured,
    of_models,
)
from leaderboard.label_pages import class_figures, label_counts
from leaderboard.model_facts import display_name

_LABELS = metric_headings()
_COLUMNS = (
    *("macro_f1", "accuracy", "rsd", "bias_score", "bias_score_floor"),
    *("bias_score_answers", "bias_score_answers_floor", "domain_label_bias", "domain_label_bias_floor"),
    *("gini", "gini_floor", "squared_cv", "cobias", "smallest_class_accuracy"),
    *("rsd_paper", "rsd_paper_floor", "cobias_paper", "cobias_paper_floor"),
    *("n_shown", "cut_rate"),
)
_RANKING = 8
"""Number of examples after which models are ranked and calibrations are compared."""


def _index_label(measure: str, k: int, method: str = "", *more: str) -> str:
    shown = f"{k} examples" if k else "no examples"
    return ", ".join(filter(None, (MEASURES[measure].heading, METHODS.get(method), shown, *more)))


def _share(n_frequent: int) -> str:
    return f"{n_frequent} with the more frequent of two labels"


def _prompt_name(prompt: Prompt) -> str:
    in_words = ", answered in words" if prompt.scoring == "generation" else ""
    if not prompt.n_examples:
        return f"no solved examples{in_words}"
    shares = [f", {_share(number)}" for number in N_FREQUENT if prompt.example_rule == rule_of(number)]
    return f"{prompt.n_examples} solved examples{''.join(shares)}, set {prompt.example_set}{in_words}"


_CURVES = ("macro_f1", "rsd", "bias_score")
_CALIBRATED = {
    measure: [one.name for one in calibrations() if measure in calibrated_measures(one)]
    for measure in ("macro_f1", "bias_score")
}
"""Names of the calibrations before and after which a measure is compared."""
_ONCE = ("accuracy", "gini", "squared_cv", "rsd_paper", "bias_score_answers")
"""Measures with an index after the number of examples that ranks, and no other."""
_INDEX_LABELS = {
    **{f"{name}_k{_RANKING}": _index_label(name, _RANKING) for name in (*_ONCE, *QUARTERS)},
    **{f"{name}_k{k}": _index_label(name, k) for name in (*_CURVES, "domain_label_bias") for k in N_EXAMPLES},
    **{
        f"{name}_k{N_BALANCED}_{rule_of(number)}": _index_label(name, N_BALANCED, "", _share(number))
        for name in _CURVES
        for number in N_FREQUENT
    },
    **{
        f"{name}_k{_RANKING}_{sets_suffix(N_COMPARED)}": _index_label(name, _RANKING, "", f"{N_COMPARED} sets")
        for name in load_benchmark("superni").compared_over_sets
    },
    **{
        f"{name}_{method.name}_k{k}": _index_label(name, k, method.name)
        for name in (*_CURVES, "gini", "squared_cv", *QUARTERS)
        for method in calibrations()
        for k in N_EXAMPLES
        if calibrated_at(name, method, k)
    },
}


_MEASURES = {MEASURES[name].heading: name for name in _CURVES}
_MEANS = "Values are means over three sets of examples"
_SETS = f"{_MEANS}, with 95 % intervals."


def _by_examples(name: str) -> tuple[Shown, ...]:
    return tuple(Shown(str(k), f"{name}_k{k}") for k in N_EXAMPLES)


_UNCORRECTED = {heading: _by_examples(name) for heading, name in _MEASURES.items()}
_BY_EXAMPLES = Curves(
    name="by-examples",
    caption="What solved examples change. Macro-F1: higher is better. Squared RSD and BiasScore: 0 is even over the "
    "classes and no lean to any label. Domain-label bias: 0 is no lean that comes from the words of the tasks alone. "
    f"{_SETS} Of many models those at the ends are named, and the others are grey.",
    subject="from no solved example to sixteen",
    x_title="Solved examples in the prompt",
    panels=_UNCORRECTED | {MEASURES["domain_label_bias"].heading: _by_examples("domain_label_bias")},
)
_BY_SHARE = Curves(
    name="by-share",
    caption=f"What the labels of the {N_BALANCED} solved examples change, in tasks with two labels: how many have the "
    "label that is more frequent in the task. An even model has flat lines, with squared RSD and BiasScore at 0. "
    f"{_SETS}",
    subject="from half of the examples with the more frequent label to all",
    x_title="Share of the more frequent label",
    panels={
        heading: tuple(
            Shown(f"{number / N_BALANCED:g}", f"{name}_k{N_BALANCED}_{rule_of(number)}") for number in N_FREQUENT
        )
        for heading, name in _MEASURES.items()
    },
)
_CORRECTIONS = (
    "batch (BC), batch with a learned strength (BCL), contextual (CC), domain context (DC), Gini reweighting, "
    "leave-one-out (LOOC)"
)
_ADAPTED = "LoRA"
"""Name of the model with adapters, which the paper compares with the corrections."""
_BY_CORRECTION = Curves(
    name="by-correction",
    caption=f"What each correction of the probabilities changes, as far as there are results: {_CORRECTIONS}; and what "
    f"adapters trained on 16 items of each task change ({_ADAPTED}), for the first models of the benchmark's table. "
    f"Macro-F1: higher is better. Squared RSD and BiasScore: 0 is even. {_MEANS}; their intervals are in the files "
    "of that table.",
    subject="uncorrected and after each correction",
    x_title="Solved examples",
    panels=_UNCORRECTED,
    lines={
        "none": _UNCORRECTED,
        **{
            method.label: {
                heading: _by_examples(f"{name}_{method.name}")
                for heading, name in _MEASURES.items()
                if name in calibrated_measures(method)
            }
            for method in calibrations()
        },
        _ADAPTED: {
            heading: tuple(shown._replace(with_adapters=True) for shown in values)
            for heading, values in _UNCORRECTED.items()
        },
    },
)
_EQUIVALENT = "equivalent_labels"
_BY_KIND_OF_LABELS = Curves(
    name="by-kind-of-labels",
    caption="All tasks, and those whose labels only name places, such as A, B and C, so that no label has a meaning to "
    f"prefer, for the first models of the benchmark's table. {_MEANS}, without intervals.",
    subject="all tasks and those with equivalent labels",
    x_title="Solved examples",
    panels=_UNCORRECTED,
    lines={
        "all": _UNCORRECTED,
        **{
            words: {
                heading: tuple(
                    Shown(str(k), name, {_EQUIVALENT: answer}, contexts=tuple(contexts_of(k))) for k in N_EXAMPLES
                )
                for heading, name in _MEASURES.items()
            }
            for answer, words in {"yes": "equivalent", "no": "others"}.items()
        },
    },
)


def _lean_goes(results: Results) -> Finding | None:
    """Compare BiasScore before and after the division by the answers to random words, in all sets of examples."""
    index = next(one for one in load_benchmark("superni").indices if one.name == f"bias_score_k{_RANKING}")
    entries = [
        entry
        for of_config in results.values()
        for entry in of_config
        if any(part.source.fits(entry.result.signature) for part in index.parts)
    ]
    by_model = {
        identity: measured(
            [entry for entry in entries if entry.result.model.identity_sha256 == identity],
            ("bias_score", {}),
            ("bias_score_dc", {}),
        )
        for identity in dict.fromkeys(entry.result.model.identity_sha256 for entry in entries)
    }
    known = [of_sets for of_sets in by_model.values() if len(of_sets) == len(index.parts)]
    less = [
        (
            of_sets[0][0],
            fmean(before.value or 0.0 for _, before, _ in of_sets),
            fmean(after.value or 0.0 for _, _, after in of_sets),
        )
        for of_sets in known
        if all(is_above(before, after) for _, before, after in of_sets)
    ]
    if len(known) < LEAST_MODELS or not less:
        return None
    widest, first, last = max(less, key=lambda change: change[1] - change[2])
    return Finding(
        f"{of_models(len(less), len(known), 'prefer', 'prefers')} some answers clearly less once what they say to "
        "random words is taken out of their probabilities, whichever solved examples they see. The largest change is "
        f"that of {display_name(widest.result.model.id)}: from {first:.2f} to {last:.2f}, where 0 is no preference.",
        (widest, *(entry for entry, *_ in less if entry is not widest)),
    )


PAGES = BenchmarkPages(
    name="superni",
    title="Label bias",
    question="Does a model sort texts by what they say, or does it prefer some answers whatever the text says?",
    examples=(
        Example(
            "You are given a sentence from a diary. Decide which emotion the writer felt. Answer with joy, sadness, "
            "anger, fear, surprise or disgust.\nInput: On Tuesday I found a clump of hair in my soup, and I found it "
            "utterly revolting.",
            "The model has seen eight solved examples and is asked for one of the six words. Is it right in all six "
            "classes, or does it say joy to everything?",
        ),
    ),
    headlines=(
        Headline(
            f"macro_f1_k{_RANKING}",
            "Macro-F1",
            f"How well the model finds every class after {_RANKING} solved examples, with all classes counting the "
            "same. 1 is perfect; guessing gets little more than 1 divided by the number of classes.",
            "mean over classes, from 0 to 1",
        ),
        Headline(
            f"rsd_k{_RANKING}",
            "Uneven over classes (squared RSD)",
            "How much the accuracy differs between classes, beyond chance. 0 is the same for all. Guessing gets 0 "
            "too, so look at the macro-F1 first.",
            "spread divided by the mean, squared",
        ),
        Headline(
            f"bias_score_k{_RANKING}",
            "Prefers some labels (BiasScore)",
            "How far the model leans to some labels on average, whatever the text says. 0 is not at all.",
            "distance from 0 to 1",
        ),
    ),
    config_names={"tasks": ""},
    prompt_names={prompt.id: _prompt_name(prompt) for prompt in label_prompts().values()},
    labels=_LABELS | _INDEX_LABELS,
    variants=frozenset(_LABELS) - {*_COLUMNS},
    summarised=("macro_f1", "accuracy", "rsd", "bias_score"),
    layouts=(Layout(deciders=("macro_f1",), columns=tuple(map(Column, _COLUMNS)), plane=("macro_f1", "bias_score")),),
    group_names={
        "n_labels": "number of labels",
        "equivalent_labels": "equivalent labels",
        "example_balance": "labels of the examples",
        "content_free": "input without content",
        "shown_labels": "labels of the examples shown",
        "shown_place": "place among the examples",
    },
    findings=(_lean_goes,),
    index_columns=(
        *(f"{name}_k{_RANKING}" for name in ("accuracy", "rsd", "rsd_paper", "bias_score", "bias_score_answers")),
        *(f"{name}_k{_RANKING}" for name in ("domain_label_bias", "gini", "squared_cv")),
        *(f"{name}_{method}_k{_RANKING}" for name in ("macro_f1", "bias_score") for method in _CALIBRATED[name]),
        f"gini_gini_k{_RANKING}",
        "macro_f1_k0",
    ),
    figures=(
        _BY_EXAMPLES,
        _BY_CORRECTION,
        *class_figures(_CALIBRATED["macro_f1"], f"_k{_RANKING}", f"{_MEANS}. "),
        _BY_KIND_OF_LABELS,
        _BY_SHARE,
    ),
    count_tables=label_counts,
    baseline_note=(
        "Baselines answer by a fixed rule and are never ranked. Even guessing has a perfect RSD and BiasScore of 0, so "
        "these say nothing without the macro-F1 beside them. With few items chance alone keeps BiasScore and the "
        "measures of the papers from 0: compare these with the values by chance."
    ),
    papers=(
        Paper(
            key="reif2024beyond",
            title="Beyond Performance: Quantifying and Mitigating Label Bias in LLMs",
            authors=("Reif, Yuval", "Schwartz, Roy"),
            booktitle="Proceedings of the 2024 Conference of the North American Chapter of the Association for "
            "Computational Linguistics: Human Language Technologies (Volume 1: Long Papers)",
            year=2024,
            address="https://arxiv.org/abs/2405.02743",
            arxiv="2405.02743",
        ),
    ),
)
