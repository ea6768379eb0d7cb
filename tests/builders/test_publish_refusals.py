"""Refusals to publish data whose licence forbids it, whatever its manifest says and whichever file holds it."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.progress import silent
from builders.dataset.output import Draft, ExtraFile, write_dataset
from builders.dataset.protected import ProtectedSource, digest, digests_of, holds_protected, packed
from builders.publishable import read_dataset
from builders.superni import drafts as superni
from builders.synthbias import PROTECTED, PUBLISHED_SHA256, embedded, published, winobias
from builders.synthbias.generation.generated import KeepLimits, check
from builders.synthbias.generation.instructions import DesignCell
from builders.synthbias.generation.written_sentences import WrittenSentence
from builders.synthbias.minimal_pairs import Slotted
from schemas.documents.dataset import Reject
from schemas.items.coreference import CoreferenceItem

REPOSITORY = Path(__file__).parents[2]
PLUG_IN = """
from pathlib import Path
from builders.description import Builder, BuilderSource
from builders.dataset.protected import ProtectedSource

BUILDER = Builder(
    name="closed",
    summary="data of a test",
    sources=(
        BuilderSource(
            name="closed", dataset="closed", summary="", input=None, licence="none", redistributable=False
        ),
    ),
    protected=(
        ProtectedSource(
            name="Closed",
            refusal="a test keeps it closed",
            file_sha256s=("HASH",),
            digests=Path(__file__).with_name("closed.bin"),
        ),
    ),
)
"""


def edit(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    told: Any = strict_json.read(folder / "dataset.json")
    change(told)
    strict_json.write(folder / "dataset.json", told)


def flip_flag(told: dict[str, Any]) -> None:
    told.update(redistributable=True, publish_refusal=None)


def flip_sources(told: dict[str, Any]) -> None:
    for source in told["sources"]:
        source["redistributable"] = True


def hide_sources(told: dict[str, Any]) -> None:
    for source in told["sources"]:
        source["sha256"] = None


def hide_builder(told: dict[str, Any]) -> None:
    told.update(name="mine", benchmark="mine", parameters={}, builder="mine", licence="MIT")
    told["sources"] = [told["sources"][0] | {"name": "mine", "address": "mine", "licence": "MIT"}]


def refusal(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_dataset(folder)
    return str(caught.value)


@pytest.mark.slow
def test_published_synthbias_is_refused_however_its_manifest_is_edited(shared_data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    manifest = write_dataset(published.draft(shared_data / "synthbias" / "synthbias_data.csv", limit=40), folder)
    assert "forbids sharing adapted copies" in refusal(folder)
    edit(folder, flip_flag)
    assert "redistributable: true, but the licence of SynthBias forbids it; set false" in refusal(folder)
    edit(folder, flip_sources)
    assert "its source is the published file of SynthBias" in refusal(folder)
    edit(folder, hide_sources)
    assert "the builder says that its source 'synthbias' (CC-BY-NC-ND-4.0)" in refusal(folder)
    edit(folder, hide_builder)
    said = refusal(folder)
    n_items = sum(entry.n_items for entry in manifest.splits)
    assert f"row 1: has a text of SynthBias, and so have {n_items} rows and lines in all" in said


@pytest.mark.slow
def test_the_digests_are_those_of_the_published_sentences(shared_data: Path) -> None:
    with (shared_data / "synthbias" / "synthbias_data.csv").open(encoding="utf-8", newline="") as file:
        sentences = [row["sample"] for row in csv.DictReader(file)]
    assert PROTECTED.digests.read_bytes() == packed(sentences)
    assert PROTECTED.file_sha256s == (PUBLISHED_SHA256,)
    known = digests_of(PROTECTED.digests)
    assert all(holds_protected(sentence, known) for sentence in sentences)


@pytest.mark.slow
def test_winobias_is_not_taken_for_it(shared_data: Path, tmp_path: Path) -> None:
    write_dataset(winobias.draft(shared_data / "winobias", limit=None), tmp_path / "d")
    assert set(read_dataset(tmp_path / "d").files) > {"LICENSE", "README.md", "croissant.json", "dataset.json"}


@pytest.mark.slow
def test_the_embedded_dataset_is_not_taken_for_it() -> None:
    known = digests_of(PROTECTED.digests)
    assert len(known) == 15_861
    texts = [item.sentence for split in embedded.draft().splits for item in split.items]
    assert len(texts) == 12_640
    assert [text for text in texts if holds_protected(text, known)] == []


@pytest.mark.parametrize(
    ("text", "is_known"),
    [
        ("The cook thanked the nurse because he was late.", True),
        ("the cook thanked the nurse, because she was late", True),
        ("The cook thanked the nurse because they was late.", True),
        ("The cook thanked the nurse because xe was late!", True),
        ('Sentence: The cook thanked the nurse because she was late.\nQuestion: Who does "she" mean?', True),
        ("Read this. The cook thanked the nurse because he was late. Who was late?", True),
        (
            '{"sentences": [{"before": "The cook thanked the nurse because ", "case": "x", "after": " was late."}]}',
            True,
        ),
        ('It is:\n```json\n{"after": "was late.", "before": "The cook thanked the nurse because"}\n```', True),
        (r"{\"before\": \"Hello. The cook thanked the nurse because \", \"after\": \" was late. Bye.\"}", True),
        ("| 1 | The cook thanked the nurse because he was late. | yes |", True),
        ('{"before": "The cook thanked the nurse because ", "after": " was early."}', False),
        ('{"before": "The cook thanked the nurse because ", "after": 1} {"before": [', False),
        ("The cook thanked the nurse because he was early.", False),
        ("The nurse thanked the cook because he was late.", False),
        ("The cook thanked the nurse because he was late for work.", False),
    ],
)
def test_a_text_is_known_in_other_pronouns_and_inside_a_prompt(text: str, is_known: bool) -> None:
    known = frozenset({digest("The cook thanked the nurse because he was late.")})
    assert holds_protected(text, known) is is_known


def say(plug_ins: Path, folder: Path) -> str:
    """Read a folder in a process that has plug-ins, and return what is said against publishing it."""
    program = (
        "import sys\nfrom pathlib import Path\nfrom builders.publishable import read_dataset\n"
        "from biasboard.ground.errors import DataError\n"
        "try: print('may be published', len(read_dataset(Path(sys.argv[1])).files))\n"
        "except DataError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        env=os.environ | {"BIASBOARD_PLUGINS": str(plug_ins), "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


@pytest.fixture(scope="module")
def draft() -> Draft[CoreferenceItem]:
    return embedded.draft(limit=40)


@pytest.fixture(scope="module")
def plug_ins(draft: Draft[CoreferenceItem], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plug-ins with a builder that protects the third text of type2."""
    root = tmp_path_factory.mktemp("plug-ins")
    (root / "builders").mkdir()
    (root / "builders" / "closed.py").write_text(PLUG_IN.replace("HASH", "f" * 64))
    (root / "builders" / "closed.bin").write_bytes(packed([draft.splits[1].items[2].sentence]))
    return root


@pytest.mark.slow
def test_made_data_that_is_protected_is_refused_however_its_manifest_is_edited(
    draft: Draft[CoreferenceItem], plug_ins: Path, tmp_path: Path
) -> None:
    closed = dataclasses.replace(
        draft,
        name="closed",
        benchmark="closed",
        licence="none",
        parameters={"source": "closed"},
        publish_refusal="no",
        sources=(dataclasses.replace(draft.sources[0], sha256="f" * 64, redistributable=False),),
    )
    folder = tmp_path / "d"
    write_dataset(closed, folder)
    assert say(plug_ins, folder) == "dataset closed@3.0.0 must not be published: no\n"
    edit(folder, flip_flag)
    assert f"redistributable: true, but the licence of {draft.sources[0].name} forbids" in say(plug_ins, folder)
    edit(folder, flip_sources)
    assert "its source is the published file of Closed: a test keeps it closed" in say(plug_ins, folder)
    edit(folder, hide_sources)
    assert "the builder says that its source 'closed' (none)" in say(plug_ins, folder)
    edit(folder, hide_builder)
    # Both sides of the pair are one text but for the pronoun.
    path = folder / "data/type2/test-00000-of-00001.parquet"
    assert say(plug_ins, folder) == (
        f"{path}: row 3: has a text of Closed, and so have 2 rows and lines in all; build the dataset without "
        "them: a test keeps it closed\n"
    )


@pytest.mark.slow
def test_a_rejected_candidate_that_is_protected_is_refused_too(
    draft: Draft[CoreferenceItem], plug_ins: Path, tmp_path: Path
) -> None:
    closed = draft.splits[1].items[2]
    kept = tuple(
        dataclasses.replace(split, items=[item for item in split.items if item.pair_id != closed.pair_id])
        for split in draft.splits
    )
    write_dataset(dataclasses.replace(draft, splits=kept), tmp_path / "without")
    assert say(plug_ins, tmp_path / "without") == "may be published 7\n"
    reject = Reject(candidate=closed.sentence, source_row=None, rule="gap_too_small", reason="made by a test")
    write_dataset(dataclasses.replace(draft, splits=kept, rejects=(reject,)), tmp_path / "rejects")
    assert "rejects.parquet: row 1: has a text of Closed" in say(plug_ins, tmp_path / "rejects")


def columns(**cells: object) -> bytes:
    content = io.BytesIO()
    pq.write_table(pa.table({name: [None, cell] for name, cell in cells.items()}), content)
    return content.getvalue()


SLOT = {"before": "The cook thanked the nurse because ", "case": "nominative", "after": " was late."}
SLOTTED = json.dumps({"sentences": [SLOT]})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("generation/1/records.parquet", columns(exchanges=[{"text": f"Here:\n{SLOTTED}"}]), "row 2"),
        ("more/parts.parquet", columns(slot=SLOT), "row 2"),
        ("more/texts.parquet", columns(id="a", note="The cook thanked the nurse because she was late."), "row 2"),
        ("votes.csv", b"id,text\r\n1,The cook thanked the nurse because xe was late.\r\n", "line 2"),
        ("notes.md", b"# Notes\n\n* The cook thanked the nurse because *he* was late.\n", "line 3"),
        ("run.json", json.dumps({"answers": [SLOTTED]}, indent=1).encode(), "line 3"),
        ("parts.json", json.dumps([SLOT], indent=1).encode(), ""),
        ("answers.jsonl", json.dumps({"text": SLOTTED}).encode(), "line 1"),
    ],
)
def test_a_listed_file_with_a_protected_text_is_refused(
    name: str,
    content: bytes,
    place: str,
    draft: Draft[CoreferenceItem],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    digests = tmp_path / "closed.bin"
    digests.write_bytes(packed(["The cook thanked the nurse because they was late."]))
    closed = ProtectedSource(name="Closed", refusal="a test keeps it closed", file_sha256s=(), digests=digests)
    file = ExtraFile(name=name, content=content, description="made by a test")
    folder = tmp_path / "d"
    write_dataset(dataclasses.replace(draft, extra_files=(file,)), folder)
    assert name in read_dataset(folder).files
    monkeypatch.setattr("builders.publishable._protected", lambda: [closed])
    assert refusal(folder).startswith(f"{folder / name}: {place}".removesuffix(": ") + ": has a text of Closed")


@pytest.mark.slow
def test_a_card_with_a_protected_text_is_refused(draft: Draft[CoreferenceItem], plug_ins: Path, tmp_path: Path) -> None:
    closed = draft.splits[1].items[2]
    kept = tuple(
        dataclasses.replace(split, items=[item for item in split.items if item.pair_id != closed.pair_id])
        for split in draft.splits
    )
    card = dataclasses.replace(draft.card, known_limits=f"It lacks this: {closed.sentence}")
    write_dataset(dataclasses.replace(draft, splits=kept, card=card), tmp_path / "d")
    n_line = next(
        number
        for number, line in enumerate((tmp_path / "d" / "README.md").read_text().splitlines(), start=1)
        if closed.sentence in line
    )
    assert f"README.md: line {n_line}: has a text of Closed" in say(plug_ins, tmp_path / "d")


def test_a_protected_sentence_that_a_model_writes_is_a_reject_without_its_text() -> None:
    cell = DesignCell(config="type1", first="driver", second="nurse", referent=None)
    candidates = [
        WrittenSentence(
            row=row,
            cell=cell,
            slotted=Slotted(
                "type1", "The driver greeted the nurse before ", "nominative", rest, "driver", "nurse", None
            ),
        )
        for row, rest in (("a/1", " opened the door."), ("a/2", " closed the door."))
    ]
    known = frozenset({digest("The driver greeted the nurse before she opened the door.")})
    kept = check(candidates, KeepLimits(), report=silent, published=known)
    assert [item.source_row for item in kept.items] == ["a/2", "a/2"]
    assert [(reject.source_row, reject.rule, reject.candidate) for reject in kept.rejects] == [
        ("a/1", "published_text", "")
    ]
    assert check(candidates, KeepLimits(), report=silent).rejects == ()


@pytest.mark.slow
def test_the_published_file_itself_is_refused(shared_data: Path, tmp_path: Path) -> None:
    write_dataset(embedded.draft(limit=40), tmp_path / "d")
    shutil.copy(shared_data / "synthbias" / "synthbias_data.csv", tmp_path / "d" / "raw.csv")
    assert "holds the published file of SynthBias; remove it" in refusal(tmp_path / "d")


def test_a_source_that_no_builder_may_share_is_refused_by_the_builders_word(tmp_path: Path) -> None:
    draft = superni.from_embedded(superni.TaskOptions(("course_topics",), 20, 42, silent)).draft
    write_dataset(dataclasses.replace(draft, parameters={**draft.parameters, "source": "hub"}), tmp_path / "d")
    assert "the builder says that its source 'hub' (other) allows no converted copies" in refusal(tmp_path / "d")
