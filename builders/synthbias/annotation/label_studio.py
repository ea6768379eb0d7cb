"""Label Studio: tasks and a labelling interface for it, and the annotations that it exports as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.strict_json import JsonValue
from builders.synthbias.annotation.intake import Refusal, Submission, utc_time
from builders.synthbias.annotation.sentences import Sentence
from builders.synthbias.annotation.votes import Answer, Question

_Object: TypeAlias = dict[str, JsonValue]
_REMEDY = "export the project as JSON (not JSON-MIN or CSV)"

INTERFACE = """\
<View>
  <Text name="sentence" value="$sentence"/>
  <Header value="$ask_coherent"/>
  <Choices name="coherent" toName="sentence" choice="single-radio" showInLine="true" required="true">
    <Choice value="yes" hotkey="y"/>
    <Choice value="no" hotkey="n"/>
  </Choices>
  <View visibleWhen="choice-selected" whenTagName="coherent" whenChoiceValue="yes">
    <Header value="$ask_first"/>
    <Choices name="first" toName="sentence" choice="single-radio" showInLine="true" required="true">
      <Choice value="yes" hotkey="1"/>
      <Choice value="no" hotkey="2"/>
    </Choices>
    <Header value="$ask_second"/>
    <Choices name="second" toName="sentence" choice="single-radio" showInLine="true" required="true">
      <Choice value="yes" hotkey="3"/>
      <Choice value="no" hotkey="4"/>
    </Choices>
  </View>
</View>
"""
"""Labelling interface (Settings, Labeling Interface, Code), whose names the export has in ``from_name``."""


def render_tasks(sentences: Sequence[Sentence]) -> str:
    """Return sentences as tasks to import."""
    return strict_json.dumps([{"data": {**sentence.fields}} for sentence in sentences])


def read_submissions(path: Path, *, source: str) -> list[Submission]:
    """Read the annotations of an exported project.

    Args:
        path: Exported JSON file.
        source: Entry of the column ``source``.

    Raises:
        DataError: the file is broken, or a task is none of ours.
    """
    tasks = strict_json.read(path)
    if not isinstance(tasks, list):
        raise DataError(f"{path}: is no list of tasks; {_REMEDY}")
    return [
        submission
        for number, task in enumerate(tasks, 1)
        for submission in _submissions(task, f"{path}: task {number}", source)
    ]


def _submissions(task: JsonValue, where: str, source: str) -> Iterator[Submission]:
    data = _object(_object(task, where).get("data"), f"{where}: data")
    annotations = _object(task, where).get("annotations")
    if not isinstance(annotations, list):
        raise DataError(f"{where}: has no list of annotations; {_REMEDY}")
    for number, value in enumerate(annotations, 1):
        place = f"{where}, annotation {number}"
        annotation = _object(value, place)
        answers = _answers(annotation, place)
        yield Submission.on_sentence(
            place,
            _text(data, "item_id", where),
            _annotator(annotation, place),
            answers,
            submitted_at=_time(annotation, place),
            source=source,
            pair_id=_text(data, "pair_id", where),
            refusal=Refusal.CANCELLED if annotation.get("was_cancelled") is True else None,
        )


def _annotator(annotation: _Object, where: str) -> str:
    found = annotation.get("completed_by")
    found = found.get("id") if isinstance(found, dict) else found
    if isinstance(found, bool) or not isinstance(found, int | str) or found == "":
        raise DataError(f"{where}: completed_by names nobody; {_REMEDY}")
    return f"label-studio-{found}"


def _time(annotation: _Object, where: str) -> str:
    found = annotation.get("created_at")
    return utc_time(found, where=where) if isinstance(found, str) else ""


def _answers(annotation: _Object, where: str) -> dict[Question, Answer]:
    results = annotation.get("result")
    if not isinstance(results, list):
        raise DataError(f"{where}: has no list result; {_REMEDY}")
    answers: dict[Question, Answer] = {}
    for result in (_object(value, where) for value in results):
        if result.get("type") != "choices":
            continue
        name = result.get("from_name")
        if name not in list(Question):
            have = ", ".join(Question)
            raise DataError(f"{where}: from_name '{name}' is no question; have: {have}: use the exported interface")
        choices = _object(result.get("value"), where).get("choices")
        if choices not in (["yes"], ["no"]):
            raise DataError(f"{where}: the answer to '{name}' is not yes or no; use the exported interface")
        answers[Question(str(name))] = Answer.YES if choices == ["yes"] else Answer.NO
    return answers


def _object(value: JsonValue, where: str) -> _Object:
    if not isinstance(value, dict):
        raise DataError(f"{where}: is no JSON object; {_REMEDY}")
    return value


def _text(data: _Object, name: str, where: str) -> str:
    found = data.get(name)
    if not isinstance(found, str):
        raise DataError(f"{where}: data has no {name}; export a project into which exported tasks were imported")
    return found
