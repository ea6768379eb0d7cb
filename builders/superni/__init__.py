"""Builder of the superni benchmark: does a language model prefer some labels of a classification task to others?

This is the benchmark of label bias by Reif and Schwartz (2024, arXiv:2405.02743), on classification tasks of
Super-NaturalInstructions (Wang et al. 2022, arXiv:2204.07705). Each config is one task. Its splits are:

* test: the items that are evaluated;
* bias: 32 items on which the bias towards labels is measured;
* pool: 64 items from which the demonstrations of a prompt are taken;
* content_free: inputs without content, on which calibrations are fitted and domain-label bias is measured.

It measures how evenly a model treats the labels of a task, not how it treats people, and it covers English only.

::

    source (embedded, natural_instructions) ──> instruction, inputs and outputs of each task
        |  task_choice     which tasks to build, and what is counted of each
        v
    items                  labels, flags and splits of a task; content_free: inputs without content
        v
    drafts                 the draft of a dataset from each source, with the texts of cards ──> builders/dataset
"""

from __future__ import annotations

from builders.description import Builder, BuilderSource

BUILDER = Builder(
    name="superni",
    summary="label bias over many classification tasks (Reif and Schwartz 2024)",
    sources=(
        BuilderSource(
            name="embedded",
            dataset="superni",
            summary="small tasks of this project; needs no file (default)",
            licence="Apache-2.0",
            redistributable=True,
        ),
        BuilderSource(
            name="natural-instructions",
            dataset="superni-natural-instructions",
            summary="tasks of Super-NaturalInstructions; the 279 of the publication, or others with --tasks",
            input="the folder tasks/ of https://github.com/allenai/natural-instructions",
            licence="other",
            redistributable=False,
        ),
    ),
)
