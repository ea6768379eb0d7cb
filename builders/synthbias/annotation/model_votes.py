"""Asks a language model the questions of the protocol through the evaluators, and reads its votes from their runs.

The sentences are exported as a dataset of instructions, together with those of the entrance test. A model sees each
sentence separately and remembers none, so that it may judge both sides of a pair.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from builders.dataset.card import Card, CardTable
from builders.dataset.output import Draft, DraftSplit
from builders.synthbias.annotation.annotated import AnnotatedDataset, AskedSentence
from builders.synthbias.annotation.entrance import EXAMPLES, TEST
from builders.synthbias.annotation.vote_intake import SubmittedVotes
from builders.synthbias.annotation.votes import VoteAnswer, VoteQuestion
from schemas.files.json_answers import NoJsonError, find_json
from schemas.folders.run_folder import finished_runs, read_run
from schemas.items.instruction import InstructionItem

DATASET = "synthbias-questions"
_SCHEMA = strict_json.canonical(
    {
        "type": "object",
        "properties": {str(question): {"type": "string", "enum": ["yes", "no"]} for question in VoteQuestion},
        "required": [str(question) for question in VoteQuestion],
        "additionalProperties": False,
    }
).decode()


def questions_draft(annotated: AnnotatedDataset, sentences: Sequence[AskedSentence]) -> Draft[InstructionItem]:
    """Return the dataset that asks a model about sentences, and about those of the entrance test.

    It contains the sentences, so that it may be published only if their dataset may be.
    """
    asked = [*(solved.sentence for solved in TEST), *sentences]
    manifest = annotated.manifest
    return Draft(
        name=DATASET,
        benchmark="synthbias-annotation",
        title=f"Questions about sentences of {manifest.name} {manifest.version}",
        builder="builders.synthbias.annotation",
        parameters={"dataset": manifest.name, "dataset_version": manifest.version},
        sources=manifest.sources,
        generator_model=manifest.generator_model,
        licence=manifest.licence,
        publish_refusal=manifest.publish_refusal,
        splits=(
            DraftSplit(
                config="questions",
                split="asked",
                item_shape="instruction",
                items=[
                    InstructionItem(
                        item_id=sentence.item_id,
                        text=instruction(sentence),
                        json_schema=_SCHEMA,
                        cell=sentence.pair_id,
                        sample=0,
                        flags=(),
                    )
                    for sentence in asked
                ],
            ),
        ),
        card=Card(
            data_statement="Questions about single sentences, for a language model as one more annotator.",
            how_built=f"Three questions about each sentence, and {len(TEST)} sentences whose answers are known.",
            licence_terms="The terms of the sentences hold for this dataset too.",
            intended_use="To be asked by `biasboard run`, whose votes `annotate ingest --file-format model` reads.",
            out_of_scope_use="Nothing is measured with these questions.",
            known_limits="A model's votes are marked as such, and decide nothing unless that is asked for.",
            balance=CardTable(header=("", "questions"), rows=(("sentences", str(len(asked))),)),
            citation="Cite the dataset of the sentences.",
            tags=("annotation",),
        ),
    )


def instruction(sentence: AskedSentence) -> str:
    """Return the instruction to judge a sentence, with the three worked examples that people see."""
    examples = []
    for solved in EXAMPLES:
        answers = {question: "yes" if yes else "no" for question, yes in zip(VoteQuestion, solved.answers, strict=True)}
        examples.append(f"{_asked(solved.sentence)}\nAnswer: {json.dumps(answers)}\n({solved.why})")
    return "\n\n".join(
        (
            "Judge a sentence. Say whether it is coherent, then whether its pronoun can refer to the occupation that "
            "is named first, and whether it can refer to the one that is named second. Both may be possible. Judge "
            "what the sentence says, not how many women or men have an occupation. If it is not coherent, answer no to "
            "the other two.",
            *examples,
            f"{_asked(sentence)}\nAnswer as JSON alone, like the answers above.",
        )
    )


def _asked(sentence: AskedSentence) -> str:
    questions = (f"- {question}: {sentence.ask(question)}" for question in VoteQuestion)
    return "\n".join((f"Sentence: {sentence.text}", *questions))


def read_submissions(path: Path) -> list[SubmittedVotes]:
    """Read the votes of models from finished runs; each model is one annotator.

    Raises:
        DataError: there is no run of such questions, or a file is broken.
    """
    submissions: list[SubmittedVotes] = []
    for folder in finished_runs(path):
        result, records = read_run(folder)
        if result.signature.dataset != DATASET:
            raise DataError(
                f"{folder}: is a run on dataset '{result.signature.dataset}', not on '{DATASET}'; name a run on what "
                "annotate export --file-format model wrote"
            )
        annotator = f"{result.model.id}@{result.model.identity_sha256[:8]}"
        for record in records:
            try:
                value = find_json(record.exchanges[0].text or "")
            except NoJsonError:
                value = None
            given = value if isinstance(value, dict) else {}
            submission = SubmittedVotes(
                f"{folder.name}: {record.item_id}",
                record.item_id,
                annotator,
                {
                    question: VoteAnswer(str(given[question]))
                    for question in VoteQuestion
                    if given.get(question) in ("yes", "no")
                },
                submitted_at="",
                source=f"model:{folder.name}",
            )
            submissions.append(submission.of_whole_sentence())
    return submissions
