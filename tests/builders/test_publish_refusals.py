"""Refusals to publish: a folder that is broken or was edited, and data whose licence forbids it, in whichever file."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
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
from builders.synthbias import PROTECTED, PUBLISHED_SHA256, embedded, winobias
from builders.synthbias.generation.generated import KeepLimits, check
from builders.synthbias.generation.instructions import DesignCell
from builders.synthbias.generation.written_sentences import WrittenSentence
from builders.synthbias.minimal_pairs import Slotted
from schemas.documents.dataset import Reject
from schemas.items.coreference import CoreferenceItem

PLUG_IN = """
from pathlib import Path
from builders.description import Builder, BuilderSource
from builders.dataset.protected import ProtectedSource

SOURCE = {"name": "closed", "dataset": "closed", "summary": "", "input": None, "licence": "none"}
CLOSED = {"name": "Closed", "refusal": "a test keeps it closed", "digests": Path(__file__).with_name("closed.bin")}
BUILDER = Builder(
    name="closed",
    summary="data of a test",
    sources=(BuilderSource(**SOURCE, redistributable=False),),
    protected=(ProtectedSource(**CLOSED, file_sha256s=("f" * 64,)),),
)
"""


def edit(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    told: Any = strict_json.read(folder / "dataset.json")
    change(told)
    strict_json.write(folder / "dataset.json", told)


def of_sources(**fields: object) -> Callable[[dict[str, Any]], None]:
    return lambda told: told.update(sources=[source | fields for source in told["sources"]])


def hide_builder(told: dict[str, Any]) -> None:
    told.update(name="mine", benchmark="mine", parameters={}, builder="mine", licence="MIT")
    told["sources"] = [told["sources"][0] | {"name": "mine", "address": "mine", "licence": "MIT"}]


HIDING: tuple[Callable[[dict[str, Any]], None], ...] = (
    lambda told: told.update(redistributable=True, publish_refusal=None),
    of_sources(redistributable=True),
    of_sources(sha256=None),
    hide_builder,
)
"""One edit after the other, by which somebody would hide where data are from."""


def refusal(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_dataset(folder)
    return str(caught.value)


@pytest.fixture(scope="module")
def draft() -> Draft[CoreferenceItem]:
    return embedded.draft(limit=40)


@pytest.fixture
def folder(draft: Draft[CoreferenceItem], tmp_path: Path) -> Path:
    """A dataset that may be published."""
    write_dataset(draft, tmp_path / "d")
    assert read_dataset(tmp_path / "d").manifest.name == "synthbias"
    return tmp_path / "d"


@pytest.mark.slow
def test_a_folder_that_is_not_sound_is_refused_with_the_way_out(folder: Path, tmp_path: Path) -> None:
    assert "no dataset.json here; name the folder of a built dataset" in refusal(tmp_path)
    table = "data/type{}/test-00000-of-00001.parquet"
    shutil.copy(folder / table.format(2), folder / table.format(1))
    said = refusal(folder)
    assert ("content sha256" in said, "build the dataset again" in said) == (True, True)
    (folder / "data" / "type1").rename(folder / "data" / "type9")
    assert f"more; biasboard validate {folder} lists them)" in refusal(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [{"version": "3.0.1"}, {"licence": "MIT"}, {"human_validated": True}],
)
def test_a_manifest_and_a_card_that_contradict_each_other_are_noticed(change: dict[str, Any], folder: Path) -> None:
    told: Any = strict_json.read(folder / "dataset.json")
    assert {key: told[key] for key in change} != change
    edit(folder, lambda told: told.update(change))
    assert ("README.md: does not say " in (said := refusal(folder))) == ("human_validated" in change)
    assert "build the dataset again" in said
    edit(folder, lambda edited: edited.update({key: told[key] for key in change}))
    read_dataset(folder)
    card = folder / "README.md"
    card.write_text(card.read_text().replace("license: apache-2.0\n", "license: mit\n", 1))
    assert "README.md: does not say 'license: apache-2.0', as follows" in refusal(folder)
    card.write_bytes(card.read_bytes() + b"\xff")
    assert "README.md: does not say 'license: apache-2.0', as follows" in refusal(folder)


def test_what_the_hub_reads_of_a_benchmark_is_what_follows_from_the_manifest(folder: Path) -> None:
    (folder / "eval.yaml").write_text("x: 1")
    assert "eval.yaml: is not what follows from dataset.json; build the dataset again" in refusal(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", [".cache/x", "old/LICENSE"])
def test_a_file_that_is_none_of_the_dataset_is_refused_by_name(name: str, folder: Path, tmp_path: Path) -> None:
    (folder / "LICENSE").write_text("terms of the source")
    assert "LICENSE" in read_dataset(folder).files
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("x")
    assert refusal(folder).startswith(f"{folder / name}: is no file that dataset.json lists")
    assert "; move it out of the folder, or " in refusal(folder)
    (folder / "zzz").write_text("x")
    assert refusal(folder).startswith(f"{folder / name} (and 1 more): is no file")
    (folder / "zzz").unlink()
    (folder / "zzz").symlink_to(tmp_path / "elsewhere.md")
    assert "zzz: is a link; put the file itself there, or remove it" in refusal(folder)


@pytest.mark.slow
def test_the_digests_are_those_of_the_published_sentences_and_of_no_other_dataset(
    shared_data: Path, tmp_path: Path
) -> None:
    with (shared_data / "synthbias" / "synthbias_data.csv").open(encoding="utf-8", newline="") as file:
        sentences = [row["sample"] for row in csv.DictReader(file)]
    assert PROTECTED.digests.read_bytes() == packed(sentences)
    assert PROTECTED.file_sha256s == (PUBLISHED_SHA256,)
    known = digests_of(PROTECTED.digests)
    assert len(known) == 15_861
    assert all(holds_protected(sentence, known) for sentence in sentences)
    texts = [item.sentence for split in embedded.draft().splits for item in split.items]
    assert len(texts) == 12_640
    assert [text for text in texts if holds_protected(text, known)] == []
    write_dataset(winobias.draft(shared_data / "winobias", limit=None), tmp_path / "d")
    assert set(read_dataset(tmp_path / "d").files) > {"LICENSE", "README.md", "croissant.json", "dataset.json"}


@pytest.mark.parametrize(
    ("text", "is_known"),
    [
        ("The cook thanked the nurse because he was late.", True),
        ("the cook thanked the nurse, because she was late", True),
        ("The cook thanked the nurse because xe was late!", True),
        ('Sentence: The cook thanked the nurse because she was late.\nQuestion: Who does "she" mean?', True),
        ('[{"before": "The cook thanked the nurse because ", "case": "x", "after": " was late."}]', True),
        ('It is:\n```json\n{"after": "was late.", "before": "The cook thanked the nurse because"}\n```', True),
        (r"{\"before\": \"Hello. The cook thanked the nurse because \", \"after\": \" was late. Bye.\"}", True),
        ("| 1 | The cook thanked the nurse because he was late. | yes |", True),
        ('{"before": "The cook thanked the nurse because ", "after": " was early."}', False),
        ('{"before": "The cook thanked the nurse because ", "after": 1} {"before": [', False),
        ("The nurse thanked the cook because he was late.", False),
        ("The cook thanked the nurse because he was late for work.", False),
    ],
)
def test_a_text_is_known_in_other_pronouns_and_inside_a_prompt(text: str, is_known: bool) -> None:
    known = frozenset({digest("The cook thanked the nurse because he was late.")})
    assert holds_protected(text, known) is is_known


@pytest.fixture(scope="module")
def plug_ins(draft: Draft[CoreferenceItem], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plug-ins with a builder that protects the third text of type2."""
    root = tmp_path_factory.mktemp("plug-ins")
    (root / "builders").mkdir()
    (root / "builders" / "closed.py").write_text(PLUG_IN)
    (root / "builders" / "closed.bin").write_bytes(packed([draft.splits[1].items[2].sentence]))
    return root


def said_of(plug_ins: Path, *folders: Path) -> list[str]:
    """Read folders in a process that has plug-ins, and return what is said against publishing each."""
    program = (
        "import sys\nfrom pathlib import Path\nfrom builders.publishable import read_dataset\n"
        "from biasboard.ground.errors import DataError\n"
        "for folder in map(Path, sys.argv[1:]):\n"
        "    try: print('may be published', len(read_dataset(folder).files))\n"
        "    except DataError as error: print(error)\n"
    )
    environment = os.environ | {"BIASBOARD_PLUGINS": str(plug_ins), "PYTHONPATH": str(Path(__file__).parents[2])}
    words = [sys.executable, "-c", program, *map(str, folders)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.splitlines()


@pytest.mark.slow
def test_made_data_that_is_protected_is_refused_however_its_manifest_is_edited(
    draft: Draft[CoreferenceItem], plug_ins: Path, tmp_path: Path
) -> None:
    source = replace(draft.sources[0], sha256="f" * 64, redistributable=False)
    told: dict[str, Any] = {"name": "closed", "benchmark": "closed", "licence": "none", "publish_refusal": "no"}
    folders = [tmp_path / str(number) for number in range(len(HIDING) + 1)]
    write_dataset(replace(draft, **told, parameters={"source": "closed"}, sources=(source,)), folders[0])
    for before, folder, change in zip(folders, folders[1:], HIDING, strict=False):
        shutil.copytree(before, folder)
        edit(folder, change)
    # Both sides of the pair are one text but for the pronoun.
    row = f"{folders[-1] / 'data/type2/test-00000-of-00001.parquet'}: row 3"
    expected = (
        "dataset closed@3.0.0 must not be published: no",
        f"redistributable: true, but the licence of {draft.sources[0].name} forbids",
        "its source is the published file of Closed: a test keeps it closed",
        "the builder says that its source 'closed' (none)",
        f"{row}: has a text of Closed, and so have 2 rows and lines in all; build the dataset without them",
    )
    for told_of, part in zip(said_of(plug_ins, *folders), expected, strict=True):
        assert part in told_of


@pytest.mark.slow
def test_a_reject_or_a_card_with_a_protected_text_is_refused_too(
    draft: Draft[CoreferenceItem], plug_ins: Path, tmp_path: Path
) -> None:
    closed = draft.splits[1].items[2]
    kept = tuple(
        replace(split, items=[item for item in split.items if item.pair_id != closed.pair_id]) for split in draft.splits
    )
    write_dataset(replace(draft, splits=kept), tmp_path / "without")
    reject = Reject(candidate=closed.sentence, source_row=None, rule="gap_too_small", reason="made by a test")
    write_dataset(replace(draft, splits=kept, rejects=(reject,)), tmp_path / "rejects")
    card = replace(draft.card, known_limits=f"It lacks this: {closed.sentence}")
    write_dataset(replace(draft, splits=kept, card=card), tmp_path / "card")
    lines = (tmp_path / "card" / "README.md").read_text().splitlines()
    (n_line,) = (number for number, line in enumerate(lines, start=1) if closed.sentence in line)
    without, rejects, of_card = said_of(plug_ins, *(tmp_path / name for name in ("without", "rejects", "card")))
    assert without == "may be published 7"
    assert "rejects.parquet: row 1: has a text of Closed" in rejects
    assert f"README.md: line {n_line}: has a text of Closed" in of_card


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
        ("generation/1/records.parquet", columns(exchanges=[{"text": f"Here:\n{SLOTTED}"}]), ": row 2"),
        ("more/parts.parquet", columns(slot=SLOT), ": row 2"),
        ("more/texts.parquet", columns(id="a", note="The cook thanked the nurse because she was late."), ": row 2"),
        ("votes.csv", b"id,text\r\n1,The cook thanked the nurse because xe was late.\r\n", ": line 2"),
        ("run.json", json.dumps({"answers": [SLOTTED]}, indent=1).encode(), ": line 3"),
        ("parts.json", json.dumps([SLOT], indent=1).encode(), ""),
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
    write_dataset(replace(draft, extra_files=(file,)), tmp_path / "d")
    assert name in read_dataset(tmp_path / "d").files
    monkeypatch.setattr("builders.publishable._protected", lambda: [closed])
    assert refusal(tmp_path / "d").startswith(f"{tmp_path / 'd' / name}{place}: has a text of Closed")


def test_a_protected_sentence_that_a_model_writes_is_a_reject_without_its_text() -> None:
    cell = DesignCell(config="type1", first="driver", second="nurse", referent=None)
    of_both = ("type1", "The driver greeted the nurse before ", "nominative")
    candidates = [
        WrittenSentence(row=row, cell=cell, slotted=Slotted(*of_both, rest, "driver", "nurse", None))  # type: ignore[arg-type]
        for row, rest in (("a/1", " opened the door."), ("a/2", " closed the door."))
    ]
    known = frozenset({digest("The driver greeted the nurse before she opened the door.")})
    kept = check(candidates, KeepLimits(), report=silent, published=known)
    assert [item.source_row for item in kept.items] == ["a/2", "a/2"]
    assert [(one.source_row, one.rule, one.candidate) for one in kept.rejects] == [("a/1", "published_text", "")]
    assert check(candidates, KeepLimits(), report=silent).rejects == ()


def test_a_source_that_no_builder_may_share_is_refused_by_the_builders_word(tmp_path: Path) -> None:
    draft = superni.draft(names=["course_topics"], limit=20)
    write_dataset(replace(draft, parameters={**draft.parameters, "source": "natural-instructions"}), tmp_path / "d")
    assert "the builder says that its source 'natural-instructions' (other) allows no converted copies" in refusal(
        tmp_path / "d"
    )
