"""The readings of the frames, recounted from the file."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterator
from io import StringIO

import pytest

from biasboard.ground.errors import DataError
from builders.synthbias import embedded, frame_readings
from builders.synthbias.frames import open_frames, settled_frames, text_of

HEADER = "frame,reader,coherent,first,second,leans\n"


def rows() -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(text_of("votes.csv"))))


def cells(table: str) -> dict[str, list[str]]:
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {line[0]: line[1:] for line in found}


def test_two_readers_read_each_frame_once() -> None:
    counts = Counter((row["frame"], row["reader"]) for row in rows())
    assert set(counts.values()) == {1}
    read = defaultdict(set)
    for frame_id, reader in counts:
        read[frame_id].add(reader)
    assert all(found == {"1", "2"} for found in read.values())


def test_frames_that_nobody_read_are_counted_in_the_card() -> None:
    in_use = {frame.frame_id for frame in (*open_frames(), *settled_frames())}
    n_unread = len(in_use - {row["frame"] for row in rows()})
    text = " ".join(embedded.how_built().split())
    assert (f"{n_unread} of the {len(in_use)} frames in use were read by nobody but their author." in text) == (
        n_unread > 0
    )


def test_no_frame_in_use_was_read_otherwise_than_intended() -> None:
    wanted = {None: ("y", "y"), "first": ("y", "n"), "second": ("n", "y")}
    referents = {frame.frame_id: frame.referent for frame in (*open_frames(), *settled_frames())}
    for row in rows():
        if row["frame"] in referents:
            assert row["coherent"] == "y", row
            assert (row["first"], row["second"]) == wanted[referents[row["frame"]]], row


def test_open_frames_lean_to_both_positions() -> None:
    leans = Counter(row["leans"] for row in rows() if row["frame"] in {frame.frame_id for frame in open_frames()})
    assert leans["neither"] > leans["first"] + leans["second"]
    assert abs(leans["first"] - leans["second"]) <= 0.1 * sum(leans.values())


def test_the_card_counts_the_readings() -> None:
    table = cells(frame_readings.readings_table().markdown())
    used = {frame.frame_id for frame in open_frames()}
    by_reader = [[row for row in rows() if row["reader"] == reader and row["frame"] in used] for reader in "12"]
    for lean, name in (("first", "the first"), ("second", "the second"), ("neither", "neither")):
        told = [{row["frame"] for row in found if row["leans"] == lean} for found in by_reader]
        expected = [len(told[0]), len(told[1]), len(told[0] & told[1])]
        assert table[f"type 1: leans to {name}"] == [str(n) for n in expected]
    n_settled = len({row["frame"] for row in rows()} & {frame.frame_id for frame in settled_frames()})
    assert table["type 2: the referent possible, and nobody else"] == [str(n_settled)] * 3


def test_the_card_counts_where_the_readers_agree_over_all_frames_that_were_read() -> None:
    table = cells(frame_readings.agreement_table().markdown())
    for kind, place in (("open-", 0), ("settled-", 1)):
        answers = defaultdict(set)
        for row in rows():
            if row["frame"].startswith(kind):
                answers[row["frame"]].add(row["leans"])
        n_equal = sum(len(found) == 1 for found in answers.values())
        assert table["more probable"][place] == f"{n_equal} of {len(answers)}"


def test_the_card_says_who_read() -> None:
    text = " ".join(embedded.how_built().split())
    assert f"2 language models each read {len(rows()) // 2} frames once" in text
    assert "This is no annotation by people." in text
    assert f"{frame_readings.n_dropped()} of these frames were dropped and replaced" in text
    assert frame_readings.n_dropped() == text_of("dropped.toml").count("[[frame]]")


@pytest.fixture
def fresh() -> Iterator[None]:
    frame_readings.votes.cache_clear()
    yield
    frame_readings.votes.cache_clear()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("frame,reader\n", "write the columns frame, reader, coherent, first, second, leans"),
        (HEADER + "open-001,1,y,y,maybe,first\n", "row 1: is not id, reader, y or n three times, and"),
        (HEADER + "open-001,1,y,y,y\n", "row 1: is not id"),
        (HEADER + "open-001,1,y,y,y,both\n", "row 1: is not id"),
        (HEADER + "open-001,1,y,y,y,first\n" * 2, "reader 1 voted twice on open-001; keep the first vote"),
    ],
)
@pytest.mark.usefixtures("fresh")
def test_a_file_of_votes_that_breaks_the_format_is_refused(
    text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame_readings, "text_of", lambda name: text)
    with pytest.raises(DataError, match=f"votes.csv: .*{message}"):
        frame_readings.votes()
