"""Turns plans into questions for another harness, and rebuilds a plan from the metadata of an export."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path

from biasboard.ground.errors import ConfigError, DataError
from evaluators.backend import ChoiceRequest, Request
from evaluators.harness import FORMAT, Exported, ExportedQuestion, ExportedTask, MoveBorders
from evaluators.runs.plan.plan import Plan, PlannedPart, check_askable, select, shape_listed
from evaluators.task import prompt_of, task_for
from schemas.documents.dataset import Manifest
from schemas.documents.result import Normalisation


def question_id(part: PlannedPart, item_id: str, number: int) -> str:
    """Return the id of a request: ``ITEM#NUMBER``, or ``PART/ITEM#NUMBER`` in a suite."""
    name = f"{part.config}/{item_id}" if part.selected.is_of_suite else item_id
    return f"{name}#{number}"


def exported_task(plan: Plan, move: MoveBorders | None = None, tokenizer_sha256: str | None = None) -> ExportedTask:
    """Return the questions of a plan.

    Args:
        plan: The items, and how they are asked.
        move: Function that moves the borders between contexts and options for a tokenizer; None to leave every text as
            the task asks it.
        tokenizer_sha256: Hash of that tokenizer.

    Raises:
        ConfigError: the prompt cannot be asked, or the tokenizer leaves no border in any question.
        DataError: two items have the same id.
    """
    check_askable(plan.prompt)
    asked = list(_questions(plan, move))
    signature = plan.signature
    for key, n in Counter(question.id for question in asked).items():
        if n > 1:
            raise DataError(
                f"{signature.dataset} {signature.config}: {n} items have the id of question {key}; rename one"
            )
    # lm-eval fails an assertion if context and option together have as many tokens as the context alone.
    questions = [question for question in asked if question.shown is not None]
    if not questions:
        raise ConfigError(
            f"the tokenizer merges the context and the options of every question of config '{signature.config}' with "
            f"prompt '{signature.prompt}'; take another --prompt, or ask with run"
        )
    return ExportedTask(
        name=f"biasboard_{signature.dataset}_{signature.config}_{signature.prompt}",
        exported=Exported(
            format=FORMAT,
            signature=signature,
            limit=plan.selection.limit,
            n_requests=len(asked),
            requests_sha256=requests_sha256([(question.id, question.request) for question in asked]),
            tokenizer_sha256=tokenizer_sha256,
        ),
        questions=questions,
        n_left_out=len(asked) - len(questions),
    )


def requests_sha256(requests: Sequence[tuple[str, Request]]) -> str:
    """Return a hash over the id and the hash of each request, in order."""
    digest = hashlib.sha256()
    for name, request in requests:
        digest.update(f"{name}:{request.sha256}\n".encode())
    return digest.hexdigest()


def plan_again(exported: Exported, dataset: Path, manifest: Manifest, normalisation: Normalisation | None) -> Plan:
    """Rebuild the plan that was exported from the dataset.

    Args:
        exported: The metadata of the export, as a log repeats it.
        dataset: The dataset folder.
        manifest: Its manifest.
        normalisation: The normalisation that the user chose; None for the default.

    Raises:
        ConfigError: the task or prompt does not exist here.
        DataError: the dataset, task or prompt is not the exported one.
    """
    asked = exported.signature
    here = {"dataset": manifest.name, "dataset_version": manifest.version}
    _compare({name: getattr(asked, name) for name in here}, here, manifest)
    if asked.config not in {*manifest.configs, *(suite.name for suite in manifest.suites)}:
        raise DataError(
            f"config '{asked.config}' was asked, which dataset '{manifest.name}' lacks; name another folder"
        )
    task = task_for(shape_listed(manifest, asked.config), asked.task)
    prompt = prompt_of(task, asked.prompt)
    selection = select(
        dataset,
        manifest,
        asked.config,
        splits=asked.splits,
        parts=asked.parts,
        limit=exported.limit,
        support=task.support_splits,
    )
    plan = Plan(selection, task, prompt, normalisation)
    # Only the import chooses the normalisation.
    _compare(asdict(replace(asked, normalisation=None)), asdict(replace(plan.signature, normalisation=None)), manifest)
    return plan


def _compare(asked: Mapping[str, object], here: Mapping[str, object], manifest: Manifest) -> None:
    for name, value in asked.items():
        if value != here[name]:
            raise DataError(
                f"the log answers items with {name} {value}, and here it is {here[name]} (dataset '{manifest.name}' "
                f"{manifest.version}); name the dataset that was exported, or export and ask again"
            )


def _questions(plan: Plan, move: MoveBorders | None) -> Iterator[ExportedQuestion]:
    for part in plan.parts:
        choices = [request for request in chain.from_iterable(part.requests) if isinstance(request, ChoiceRequest)]
        moved: Iterator[ChoiceRequest | None] = iter(choices if move is None else move(choices))
        for (_, item), requests in zip(part.items, part.requests, strict=True):
            target = plan.task.facts(item).target
            for number, request in enumerate(requests):
                shown = next(moved) if isinstance(request, ChoiceRequest) else request
                # A prompt may not offer the right option.
                right = None if target is None or target not in request.outcomes else request.outcomes.index(target)
                yield ExportedQuestion(question_id(part, item.item_id, number), request, shown, right)
