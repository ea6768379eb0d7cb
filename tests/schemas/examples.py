"""Sound documents of every kind, small and made here, for tests to break."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from biasboard.ground import strict_json
from biasboard.ground.files import sha256_file
from schemas.documents.base import SCHEMA_VERSION
from schemas.documents.dataset import Manifest, Reject, RuleCount, Source, SplitEntry
from schemas.documents.record import Exchange, Reading, Record
from schemas.documents.result import Counts, Environment, Interval, Metric, Model, RecordsFile, Result, Signature, Usage
from schemas.files import contract, row_files
from schemas.files.arrow_files import arrow_schema
from schemas.items.coreference import CoreferenceItem

HASH = "0123456789abcdef" * 4
SPLIT_PATH = "data/type2/test-00000-of-00001.parquet"
_PER_ANSWER = ("_logprobs", "_end_logprobs", "_token_counts")


def item(pronoun: str = "he", *, pair: str = "pair-1") -> CoreferenceItem:
    """One side of a minimal pair about a mechanic and a nurse."""
    masculine = pronoun == "he"
    sentence = f"The mechanic thanked the nurse because {pronoun} was patient."
    return CoreferenceItem(
        item_id=f"{pair}-{pronoun}",
        pair_id=pair,
        cluster="mechanic|nurse",
        sentence=sentence,
        pronoun=pronoun,
        pronoun_start=sentence.index(f" {pronoun} ") + 1,
        pronoun_case="nominative",
        pronoun_gender="masculine" if masculine else "feminine",
        occupations=("mechanic", "nurse"),
        referent="nurse",
        reference="nurse",
        stereotype="anti" if masculine else "pro",
        template_id="thanked",
        source_row=None,
        flags=(),
    )


def items() -> list[CoreferenceItem]:
    return [item("he"), item("she"), item("he", pair="pair-2"), item("she", pair="pair-2")]


def reject() -> Reject:
    return Reject(candidate="The nurse left.", source_row="1", rule="one-occupation", reason="has one occupation")


def split_entry(split_items: Sequence[CoreferenceItem], config: str = "type2") -> SplitEntry:
    return SplitEntry(
        config=config,
        split="test",
        item_shape="coreference",
        path=f"data/{config}/test-00000-of-00001.parquet",
        n_items=len(split_items),
        content_sha256=row_files.content_sha256(split_items),
    )


def manifest(split_items: Sequence[CoreferenceItem], rejects: Sequence[Reject] = ()) -> Manifest:
    entry = split_entry(split_items)
    of_tests = {"name": "tests", "address": "tests", "revision": "1", "licence": "Apache-2.0"}
    return Manifest(
        schema_version=SCHEMA_VERSION,
        name="example",
        benchmark="synthbias",
        version="1.0.0",
        title="Example",
        builder="tests",
        builder_version="1.0",
        parameters={"limit": None, "share": 0.5, "n": 4, "strict": True, "source": "embedded"},
        seed=7,
        sources=(Source(**of_tests, sha256=None, redistributable=True),),
        generator_model=None,
        licence="Apache-2.0",
        redistributable=True,
        publish_refusal=None,
        human_validated=False,
        splits=(entry,),
        content_sha256=strict_json.sha256([entry.content_sha256]),
        rejects=tuple(
            RuleCount(rule=rule, n=sum(row.rule == rule for row in rejects), description="dropped")
            for rule in sorted({row.rule for row in rejects})
        ),
        flags=(),
    )


def write_dataset(folder: Path) -> Manifest:
    """A sound dataset folder of two minimal pairs and one reject."""
    rejects = [reject()]
    made = manifest(items(), rejects)
    row_files.write_rows(folder / SPLIT_PATH, items(), CoreferenceItem)
    row_files.write_rows(folder / "rejects.parquet", rejects, Reject)
    strict_json.write(folder / "dataset.json", contract.dump(made))
    (folder / "README.md").write_text("# Example\n", encoding="utf-8")
    return made


def replace_rows(path: Path, row_type: type, changes: dict[int, dict[str, object]]) -> None:
    """Change fields of rows by number, past every check."""
    values = pq.read_table(path).to_pylist(maps_as_pydicts="strict")
    for number, fields in changes.items():
        values[number - 1].update(fields)
    pq.write_table(pa.Table.from_pylist(values, schema=arrow_schema(row_type)), path)


def exchange() -> Exchange:
    """A choice between two options; the model finds the second impossible and has no end token."""
    return Exchange(
        kind="choice",
        request_sha256=HASH,
        prompt="Who was patient?",
        outcomes=("mechanic", "nurse"),
        options=(" the mechanic", " the nurse"),
        option_logprobs=(-0.25, float("-inf")),
        option_end_logprobs=(None, None),
        option_token_counts=(2, 2),
        option_byte_counts=(13, 10),
        option_is_bound=(),
        n_moved_tokens=0,
        n_prompt_tokens=5,
        status="answered",
        **dict.fromkeys(("text", "finish_reason", "sample", "n_completion_tokens", "error")),
    )


def generated_exchange(text: str | None = "She left.", outcomes: tuple[str, ...] = ()) -> Exchange:
    no_options: Any = dict.fromkeys((f"option{name}" for name in ("s", *_PER_ANSWER, "_byte_counts")), ())
    return dataclasses.replace(
        exchange(),
        kind="generate",
        outcomes=outcomes,
        **no_options,
        n_moved_tokens=None,
        text=text,
        finish_reason="stop",
        n_completion_tokens=3,
    )


def choice_exchange(outcomes: tuple[str, ...], logprobs: Sequence[float], options: tuple[str, ...] = ()) -> Exchange:
    """A choice between letters, or other options, of one token each."""
    n = len(outcomes)
    return dataclasses.replace(
        exchange(),
        outcomes=outcomes,
        options=options or tuple(f" {letter}" for letter in "ABC"[:n]),
        option_logprobs=tuple(logprobs),
        option_token_counts=(1,) * n,
        option_end_logprobs=(None,) * n,
        option_byte_counts=(2,) * n,
    )


def record(item_id: str = "pair-1-he") -> Record:
    return Record(
        item_id=item_id,
        config="type2",
        split="test",
        status="scored",
        truncated=False,
        reason=None,
        cluster="mechanic|nurse",
        pair_id="pair-1",
        target="nurse",
        reference="nurse",
        groups={"pronoun": "he", "gender": "masculine"},
        exchanges=(exchange(),),
        reading=Reading(outcomes=("mechanic", "nurse"), probabilities=(1.0, 0.0), answers=()),
    )


def failed_record(item_id: str = "pair-1-she") -> Record:
    no_answers: Any = dict.fromkeys((f"option{name}" for name in _PER_ANSWER), ())
    lost = dataclasses.replace(exchange(), **no_answers, n_moved_tokens=None, status="failed", error="connection reset")
    return dataclasses.replace(
        record(item_id), status="failed", reason="connection reset", reading=None, exchanges=(lost,), groups={}
    )


def signature(n_items: int = 2) -> Signature:
    return Signature(
        benchmark="synthbias",
        dataset="example",
        dataset_version="1.0.0",
        config="type2",
        splits=("test",),
        items_sha256=HASH,
        n_items=n_items,
        task="coreference",
        task_version="1.0",
        prompt="intrinsic-v1",
        prompt_sha256=HASH,
        scoring="option_logprob",
        normalisation="sum",
        n_outcomes=2,
    )


def metric() -> Metric:
    return Metric(
        name="accuracy",
        version="1.0",
        value=0.5,
        reason=None,
        interval=Interval(low=0.25, high=0.75, level=0.95, method="percentile", n_clusters=2, n_resamples=10),
        interval_reason=None,
        n=1,
        n_excluded=1,
        unit="items",
        ideal=1.0,
        minimum=0.0,
        maximum=1.0,
        group={},
    )


def undefined_metric() -> Metric:
    return dataclasses.replace(
        metric(), name="eo", value=None, reason="no negatives", interval=None, interval_reason="no value"
    )


def result(records: RecordsFile | None = None) -> Result:
    return Result(
        schema_version=SCHEMA_VERSION,
        model=Model(
            id="org/name",
            revision=None,
            backend="transformers",
            precision="float32",
            chat_template_sha256=None,
            endpoint="local",
            identity_sha256=HASH,
        ),
        signature=signature(),
        signature_sha256=signature().sha256(),
        command="python -m evaluators run",
        counts=Counts(items=2, scored=1, refused=0, unparsed=0, failed=1, truncated=0),
        metrics=(metric(), undefined_metric()),
        usage=Usage(
            n_requests=2, n_attempts=3, n_prompt_tokens=None, n_completion_tokens=None, seconds=1.5, cost_usd=None
        ),
        environment=Environment(
            biasboard="0.1.0", python="3.11", platform="Linux", device=None, packages={"numpy": "2.0"}, settings={}
        ),
        records=records or RecordsFile(path="records.parquet", sha256=HASH, n_rows=2),
        scores=None,
    )


def write_run(folder: Path) -> Result:
    """A sound run folder of one scored and one failed record."""
    path = folder / "records.parquet"
    row_files.write_rows(path, [record(), failed_record()], Record)
    made = result(RecordsFile(path=path.name, sha256=sha256_file(path), n_rows=2))
    strict_json.write(folder / "result.json", contract.dump(made))
    return made
