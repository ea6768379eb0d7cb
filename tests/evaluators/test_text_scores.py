"""Scores of texts on disk: kept, found again, refused where they are not what the result says."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.strict_json import JsonValue
from evaluators.backend import GenerateRequest
from evaluators.backends.openai.generation import Generation
from evaluators.metric import MetricDefinition, mean_metric
from evaluators.runs.measure.measuring import TextScoring, score_records, scoring_after
from evaluators.tasks.pronouns.continuation_task import TASK, ContinuationTable
from evaluators.text_scores import NO_SCORES, read_scores, score_texts, write_scores
from schemas.documents.base import as_row
from schemas.documents.record import Record
from schemas.documents.result import ScoresFile
from schemas.documents.run_files import Scorer, TextScore, text_sha256
from schemas.files import contract, row_files
from schemas.files.arrow_files import arrow_schema
from schemas.files.record_columns import RecordColumns
from schemas.folders.run_folder import SCORES
from tests.evaluators.asking import all_answers_of
from tests.evaluators.pronoun_records import recorded, sentences
from tests.evaluators.text_scoring import MadeScorer
from tests.leaderboard.gifi_results import write_gifi_model
from tests.record_files import read_records, write_records
from tests.schemas import examples

TEXTS = ("one", "two", "three", "two")


def length(text: str) -> tuple[float]:
    return (len(text) / 10,)


def test_equal_texts_are_scored_once_and_come_back_from_disk(tmp_path: Path) -> None:
    harm, tone = MadeScorer("toxicity", length), MadeScorer("sentiment", lambda text: (0.1, 0.2, 0.7))
    scores = score_texts(TEXTS, [harm, tone])
    assert harm.asked == ["one", "two", "three"]
    said = write_scores(tmp_path, scores)
    assert said is not None
    assert (said.n_rows, [scorer.label for scorer in said.scorers]) == (6, ["made-1", "made-1"])
    read = read_scores(tmp_path, said)
    assert read.values == scores.values
    hashes = [text_sha256("three"), "", text_sha256("unknown")]
    assert read.vectors("toxicity", hashes)[0].tolist() == [0.5]
    assert read.vectors("sentiment", hashes).shape == (3, 3)
    assert read.vectors("embedding", hashes).shape == (3, 0)
    again = tmp_path / "again"
    assert write_scores(again, scores) == said
    assert (again / SCORES).read_bytes() == (tmp_path / SCORES).read_bytes()


def test_a_run_without_texts_to_score_has_no_file(tmp_path: Path) -> None:
    records = recorded(TASK, sentences("Kim sold {pos} car."), lambda item: [" and left."])
    assert score_records(tmp_path, [RecordColumns.of(records)], "continuation").scores is None
    assert not list(tmp_path.iterdir())
    computed = score_records(tmp_path, [RecordColumns.of(records)], "continuation", [MadeScorer("toxicity", length)])
    assert computed.scores is not None
    # The next scoring drops them, and the file with them.
    assert score_records(tmp_path, [RecordColumns.of(records)], "continuation").scores is None
    assert not list(tmp_path.iterdir())


def test_a_metric_of_scores_takes_a_plain_version_and_has_no_value_without_them() -> None:
    loudness: MetricDefinition[ContinuationTable] = mean_metric(
        "loudness", lambda table: table.toxicities, task="continuation", scorer="toxicity", description="Made."
    )
    records = recorded(TASK, sentences("Kim sold {pos} car."), lambda item: [" and left."])
    scored = TASK.scored_table(records, score_texts(TASK.texts(records), [MadeScorer("toxicity", length)]))
    label = scored.scores.label("toxicity")
    assert loudness.facts_on(scored, is_suite=False)[:2] == (f"1.0+{label}", None)
    joined = replace(loudness, version="1.0+detector-1")
    assert joined.facts_on(scored, is_suite=False).version == f"1.0+detector-1.{label}"
    facts = loudness.facts_on(TASK.scored_table(records, NO_SCORES), is_suite=False)
    assert facts[:2] == ("1.0", "no toxicity scores: biasboard rescore RUN --scorer toxicity=lexicon")


@pytest.mark.slow
def test_a_repeated_run_takes_over_what_the_same_scorers_said(tmp_path: Path) -> None:
    folder = write_gifi_model(tmp_path, "lab/model", 0.5, tasks=("continuation",))["continuation"]
    same, other = MadeScorer("toxicity", length), MadeScorer("sentiment", length, name="other")
    left = scoring_after(folder, [same, other], keep=False)
    assert set(left.known.scorers) == {"toxicity"}
    assert len(left.known.values["toxicity"]) > 10
    # The same one is asked for what it has not said yet.
    assert left.scorers == (same, other)
    # A command that names no scorer keeps what others have said.
    left = scoring_after(folder, [same, other], keep=True)
    assert set(left.known.scorers) == {"sentiment", "toxicity", "embedding"}
    assert left.scorers == (same,)
    assert scoring_after(folder, [], keep=False) == TextScoring(())
    (folder / SCORES).unlink()
    assert scoring_after(folder, [same], keep=True) == TextScoring((same,))
    assert scoring_after(tmp_path / "none", [same], keep=True) == TextScoring((same,))


def test_a_score_file_with_text_that_is_no_utf8_is_an_error_of_one_line(tmp_path: Path) -> None:
    said = write_scores(tmp_path, score_texts(TEXTS, [MadeScorer("toxicity", length)]))
    assert said is not None
    path = tmp_path / SCORES
    table = pq.read_table(path)
    names = pa.array([b"tox\xff"] * table.num_rows, type=pa.binary())
    broken = pa.StringArray.from_buffers(len(names), *names.buffers()[1:])
    pq.write_table(table.set_column(0, table.schema.field("kind"), broken), path)
    with pytest.raises(DataError, match="holds text that is not UTF-8"):
        read_scores(tmp_path, replace(said, sha256=sha256_file(path)))


def test_the_machine_remembers_scores_of_the_same_texts_by_the_same_scorer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BIASBOARD_MEMORY", str(tmp_path))

    def rule(text: str) -> tuple[float, ...] | None:
        return None if text == "two" else (len(text) / 7,)

    first, again = MadeScorer("toxicity", rule), MadeScorer("toxicity", rule)
    scores = score_texts(TEXTS, [first])
    assert score_texts(TEXTS[::-1], [again]) == scores
    assert (len(first.asked), again.asked) == (3, [])
    for texts, name in ((TEXTS[:2], "made"), (TEXTS, "other")):
        other = MadeScorer("toxicity", rule, name=name)
        score_texts(texts, [other])
        assert len(other.asked) == len(set(texts))
    for path in tmp_path.rglob("*.json"):
        path.write_bytes(path.read_bytes().replace(b"values", b"valuez"))
    tampered = MadeScorer("toxicity", rule)
    score_texts(TEXTS, [tampered])
    assert len(tampered.asked) == 3


@pytest.mark.parametrize(
    "given",
    [
        [(0, (math.nan,))],
        [(0, 0.5)],
        [(0, ((0.5,), (0.5, 0.5)))],
        [(3, (0.5,))],
        [(-1, (0.5,))],
        [None],
        # The same text without end.
        itertools.repeat((0, (0.5,))),
    ],
)
def test_what_is_no_score_is_refused_as_it_comes_and_not_remembered(
    given: Iterable[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BIASBOARD_MEMORY", str(tmp_path / "memory"))
    scorer = MadeScorer("toxicity", length)
    with monkeypatch.context() as changed:
        changed.setattr(MadeScorer, "score", lambda self, texts: iter(given))
        with pytest.raises(DataError, match=r"scorer made-1: gives .*; correct the scorer"):
            score_texts(TEXTS, [scorer])
    assert len(score_texts(TEXTS, [scorer]).values["toxicity"]) == 3


def row(values: tuple[float, ...], kind: str = "toxicity", scorer: str = "made-1", text: str = "one") -> TextScore:
    return TextScore(kind=kind, scorer=scorer, text_sha256=text_sha256(text), values=values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "changes", "message"),
    [
        ([row((0.2,))], {"sha256": "0" * 64}, "was changed after the result was written: score the texts again"),
        ([row((0.2,))], {"n_rows": 9}, r"rows, result\.json says 9"),
        ([row((0.2,))], {"path": "https://example.org/scores.parquet"}, "is not in this folder"),
        ([row((0.2,)), row((0.2,), scorer="other-2", text="b")], {}, "row 2: toxicity by 'other-2', which result.json"),
        ([row((0.2,)), row((0.3,))], {}, "row 2: text .* has a toxicity twice"),
        ([row((1.0, 0.0), kind="embedding"), row((0.0, 1.0, 0.0), kind="embedding", text="b")], {},
            "row 2: 3 values, the rows before have 2"),
    ],
)  # fmt: skip
def test_files_that_do_not_fit_the_result_are_refused(
    tmp_path: Path, rows: list[TextScore], changes: dict[str, Any], message: str
) -> None:
    path = tmp_path / SCORES
    row_files.write_rows(path, rows, TextScore)
    scorer = Scorer(kind=rows[0].kind, name="made", revision="1", settings={})
    said = ScoresFile(path=SCORES, sha256=sha256_file(path), n_rows=len(rows), scorers=(scorer,))
    with pytest.raises(DataError, match=message):
        read_scores(tmp_path, replace(said, **changes))
    path.unlink()
    with pytest.raises(DataError, match="no such file"):
        read_scores(tmp_path, said)


@pytest.mark.parametrize(
    ("kind", "sound", "broken"),
    [
        ("sentiment", [-1.0], [1.5]),
        ("sentiment", [0.2, 0.3, 0.5], [0.2, 0.3, 0.6]),
        ("toxicity", [0.0], [-0.1]),
        ("embedding", [0.6, 0.8], [0.6, 0.7]),
        ("toxicity", [1.0], [0.1, 0.9]),
    ],
)
def test_a_score_is_in_the_range_of_its_kind(kind: str, sound: list[JsonValue], broken: list[JsonValue]) -> None:
    for values in (sound, broken):
        value: JsonValue = {"kind": kind, "scorer": "made-1", "text_sha256": text_sha256("x"), "values": values}
        assert bool([*contract.converted(value, TextScore)[1]]) == (values is broken)


def test_what_a_scorer_has_said_is_not_asked_again_and_a_stopped_scoring_goes_on(tmp_path: Path) -> None:
    first = score_texts(TEXTS, [MadeScorer("toxicity", length), MadeScorer("sentiment", length)])
    same, other = MadeScorer("toxicity", length), MadeScorer("toxicity", lambda text: (0.5,), name="other")
    later = score_texts((*TEXTS, "four"), [same], known=first)
    assert same.asked == ["four"]
    # Scores of a kind that is not asked for stay as they are, without the new text.
    assert len(later.values["sentiment"]) == 3
    changed = score_texts(TEXTS, [other], known=later)
    assert changed.label("toxicity") == "other-1"
    assert set(changed.values["toxicity"].values()) == {(0.5,)}
    texts = [f"text {n}" for n in range(10)]
    breaking = MadeScorer("toxicity", length, fails_after=6)
    with pytest.raises(KeyboardInterrupt):
        score_texts(texts, [breaking], folder=tmp_path, save_every_seconds=-1.0)
    going_on = MadeScorer("toxicity", length)
    scores = score_texts(texts, [going_on], folder=tmp_path)
    assert going_on.asked == texts[6:]
    assert len(scores.values["toxicity"]) == 10
    # Another scorer takes nothing over.
    assert len(score_texts(texts, [MadeScorer("toxicity", length, name="x")], folder=tmp_path).values["toxicity"]) == 10
    write_scores(tmp_path, scores)
    assert [path.name for path in tmp_path.iterdir()] == [SCORES]


@pytest.mark.slow
def test_a_text_has_the_sum_over_its_tokens_whatever_runs_beside_it(tiny_llama: Path) -> None:
    torch = pytest.importorskip("torch", reason="the extra hf is not installed")
    from tests.evaluators.plain_generation import made_requests, opened, plain

    requests = [replace(request, with_logprob=True) for request in made_requests(12)]
    backend = opened(tiny_llama, batch_tokens=4096)
    answers = all_answers_of(backend, requests)
    assert {answer.finish_reason for answer in answers} == {"stop", "length"}
    for request, answer in zip(requests, answers, strict=True):
        ids = backend.tokenizer.pretrained(request.prompt)["input_ids"]
        total = 0.0
        for token in plain(backend, request).ids:
            with torch.no_grad():
                logits = backend.network(torch.tensor([ids]), use_cache=False).logits[0, -1]
            # The end token counts, and neither temperature nor top_p changes the model's own probability.
            total += float(torch.log_softmax(logits.double(), dim=-1)[token])
            ids = [*ids, token]
        # Each logit is a float32 sum of at most 128 products of some units.
        assert answer.text_logprob == pytest.approx(total, abs=1e-5 * len(ids))
    assert all_answers_of(opened(tiny_llama, batch_tokens=1), requests) == answers
    (unasked,) = all_answers_of(backend, [replace(requests[0], with_logprob=False)])
    assert unasked.text_logprob is None


def test_what_is_asked_beside_the_text_makes_no_other_request_and_only_where_an_endpoint_gives_it() -> None:
    request = GenerateRequest(prompt="Who left?", max_tokens=16)
    # As before there was the field, so that stored answers are still found.
    assert request.sha256 == "7ac7eb245a72c048a0586412a90adfbd8800e43876aac03adf55d2ca75c6ee96"
    assert replace(request, asks_confidence=True).sha256 == request.sha256
    with_logprob = replace(request, with_logprob=True)
    assert with_logprob.sha256 == request.sha256
    for api, wanted in (("chat", True), ("completions", 1)):
        generation = Generation(model="m", api=api, tokenizer=None, gives_logprobs=True)
        assert generation.calls(with_logprob)[0].body["logprobs"] == wanted
        assert "logprobs" not in replace(generation, gives_logprobs=False).calls(with_logprob)[0].body


@pytest.mark.parametrize(
    ("api", "logprobs", "expected"),
    [
        ("chat", {"content": [{"token": "A", "logprob": -0.5}, {"token": ".", "logprob": -0.25}]}, -0.75),
        ("completions", {"tokens": ["A", "."], "token_logprobs": [-0.5, -0.25]}, -0.75),
        ("completions", {"token_logprobs": [-1, -9999.0]}, -math.inf),
        ("chat", None, None),
        ("chat", {"content": ["A"]}, None),
        ("completions", {"token_logprobs": [-0.5, 0.25]}, None),
        ("completions", {"token_logprobs": [-0.5, math.nan]}, None),
        ("completions", {"token_logprobs": "-0.5"}, None),
    ],
)
def test_an_endpoint_that_returns_none_leaves_it_unknown(api: str, logprobs: Any, expected: float | None) -> None:
    generation = Generation(model="m", api=api, tokenizer=None, gives_logprobs=True)
    request = GenerateRequest(prompt="Who left?", max_tokens=16, with_logprob=True)
    choice = {"index": 0, "text": "A.", "message": {"content": "A."}, "finish_reason": "stop", "logprobs": logprobs}
    read = generation.read(request, [{"choices": [choice]}])
    assert (read.text, read.text_logprob) == ("A.", expected)
    assert generation.read(replace(request, with_logprob=False), [{"choices": [choice]}]).text_logprob is None


def test_files_of_records_from_before_are_read(tmp_path: Path) -> None:
    path = tmp_path / "records.parquet"
    record = examples.record()
    known = replace(record, exchanges=(replace(examples.generated_exchange(), text_logprob=-1.5),), reading=None)
    known = replace(known, status="unparsed", reason="names no one option")
    write_records(path, [known])
    assert read_records(path)[0].exchanges[0].text_logprob == -1.5
    table = pa.Table.from_pylist([as_row(known)], schema=arrow_schema(Record))
    pq.write_table(_without(table, "text_logprob"), path)
    assert read_records(path)[0] == replace(known, exchanges=(replace(known.exchanges[0], text_logprob=None),))
    pq.write_table(_without(table, "finish_reason"), path)
    with pytest.raises(DataError, match="column exchanges is of type"):
        read_records(path)


def _without(table: pa.Table, name: str) -> pa.Table:
    """The table without a field of its exchanges."""
    index = table.schema.get_field_index("exchanges")
    field = table.schema.field(index)
    kept = pa.struct([inner for inner in field.type.value_type if inner.name != name])
    kind = pa.list_(field.type.value_field.with_type(kept))
    rows = [
        [{key: value for key, value in row.items() if key != name} for row in rows]
        for rows in table.column("exchanges").to_pylist()
    ]
    return table.set_column(index, field.with_type(kind), pa.array(rows, type=kind))
