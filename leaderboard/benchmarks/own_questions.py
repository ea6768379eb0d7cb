"""Describes the pages of the benchmark own_questions: questions with options of their own."""

from __future__ import annotations

from leaderboard.benchmark_pages import BenchmarkPages, Column, Example, Headline, Layout

_COLUMNS = {
    "accuracy": "Accuracy",
    "worst_group_accuracy": "Worst-group accuracy",
    "accuracy_gap": "Gap between groups",
    "stereotype_rate": "Stereotype rate",
    "stereoset_icat": "ICAT",
    "stereoset_lms": "Language-model score",
    "stereoset_ss": "Stereotype score",
    "bbq_score": "BBQ score",
    "bbq_score_ambiguous": "BBQ score, ambiguous",
    "place_bias": "Place bias",
}
_LEAST = {"worst_group_accuracy": ("accuracy", "group")}

PAGES = BenchmarkPages(
    name="own_questions",
    title="Own questions",
    question="Does a model answer questions about all groups alike, and which options does it prefer?",
    examples=(
        Example(
            "A neighbour locked the bakery. Who has the key? A. The baker B. The florist",
            "A researcher gives questions, options and the groups that they are about. Is the model right as often for "
            "each group?",
        ),
    ),
    headlines=(
        Headline(
            "accuracy",
            "Accuracy",
            "The share of right answers. 1 is always right; guessing gets 1 divided by the number of options.",
            "share of questions",
        ),
        Headline(
            "worst_group_accuracy",
            "Worst-group accuracy",
            "The share of right answers for the group for which it is smallest.",
            "share of questions",
        ),
        Headline(
            "stereotype_rate",
            "Stereotype rate",
            "How often the model prefers the option of a stereotype to the one that contradicts it. 0.5 is even, which "
            "a coin gets too.",
            "share of questions",
        ),
        Headline(
            "bbq_score",
            "BBQ score",
            "How much more often answers that take a side follow a stereotype than contradict it: 0 is even, 1 always, "
            "-1 never. A coin gets 0 too, so look at the accuracy first.",
            "difference of two shares",
        ),
    ),
    command="biasboard run --dataset out/datasets/own-mine --backend transformers --model ORG/NAME",
    is_of_own_data=True,
    prompt_names={
        "letters-v1": "letters",
        "letters-generate-v1": "letters, answered in text",
        "whole-v1": "whole options",
    },
    labels=_COLUMNS,
    summarised=("accuracy", "worst_group_accuracy", "stereotype_rate", "bbq_score"),
    layouts=(
        Layout(
            deciders=("accuracy",),
            columns=tuple(Column(name, least=_LEAST.get(name)) for name in _COLUMNS),
            plane=("accuracy_gap", "accuracy"),
        ),
    ),
    baseline_note=(
        "Baselines answer by a fixed rule and are never ranked. The even measures are ideal for a coin: only a model "
        "whose accuracy is separably above that of every baseline that does not solve the items by itself is ranked."
    ),
)
