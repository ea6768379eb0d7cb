"""``python -m builders.image_labels``: datasets of images from folders and from files like those of CIFAR-100."""

from __future__ import annotations

import io
import os
from collections import Counter
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from PIL import Image

from biasboard.ground.errors import ConfigError, DataError
from builders.dataset.output import write_dataset
from builders.image_labels import cifar, drafts
from builders.image_labels.images import check_labels, label_words
from builders.image_labels.items import Sizes
from builders.publishable import check_manifest
from schemas.documents.dataset import Manifest, Reject
from schemas.files.pictures import decoded
from schemas.files.row_files import read_rows
from schemas.folders.dataset_folder import REJECTS, read_manifest, read_split
from schemas.items.image import ImageItem
from schemas.validate import problems
from tests import commands
from tests.builders.image_files import cifar_folder, image_folder, noise
from tests.hostile.inputs import parquet
from tests.terminal import without_progress

SIZES = Sizes(n_bias=2, n_pool=3)


def built(folder: Path, out: Path, sizes: Sizes = SIZES, *, seed: int = 42, licence: str | None = None) -> Manifest:
    draft = drafts.draft("folder", folder, sizes, seed=seed, licence=licence)
    return write_dataset(draft, out, overwrite=True)


def splits_of(out: Path) -> dict[str, list[ImageItem]]:
    manifest = read_manifest(out)
    found = {entry.split: read_split(out, entry) for entry in manifest.splits}
    return {split: [item for item in items if isinstance(item, ImageItem)] for split, items in found.items()}


def pets(folder: Path, n: int = 6) -> Path:
    return image_folder(folder / "pets", {"cat": n, "dog": n})


def run(*arguments: str | Path, status: int = 0) -> str:
    done = commands.run("-m", "builders.image_labels", *arguments, status=status)
    return done.stdout + without_progress(done.stderr)


def sizes_of(out: Path) -> dict[str, int]:
    return {split: len(items) for split, items in splits_of(out).items()}


def test_each_image_stands_in_one_split_and_each_label_alike_whatever_labels_there_are(tmp_path: Path) -> None:
    folder = image_folder(tmp_path / "pets", {"black_cat": 9, "dog": 12})
    built(folder, tmp_path / "out")
    splits = splits_of(tmp_path / "out")
    counts = {split: Counter(item.target for item in items) for split, items in splits.items()}
    # Of 9 images of a label, 4 support the measurement (half, rounded down); 2/5 of them measure bias.
    assert counts["test"] == {"black cat": 5, "dog": 7}
    assert counts["bias"] == {"black cat": 1, "dog": 2}
    assert counts["pool"] == {"black cat": 3, "dog": 3}
    real = [item for split in ("test", "bias", "pool") for item in splits[split]]
    assert len({item.image_sha256 for item in real}) == len(real) == 21
    built(image_folder(tmp_path / "few", {"cat": 3, "dog": 3}), tmp_path / "small")
    assert sizes_of(tmp_path / "small") == {"test": 2, "bias": 2, "pool": 2, "content_free": 6}
    for item in real:
        assert item.labels == ("black cat", "dog")
        assert item.image.bytes == (folder / str(item.source_row)).read_bytes()
        assert (item.width, item.height, item.category) == (6, 5, None)
    assert not list(problems(tmp_path / "out"))
    # Another label moves no image.
    image_folder(folder, {"ant": 9})
    built(folder, tmp_path / "more")
    after = {item.item_id: split for split, items in splits_of(tmp_path / "more").items() for item in items}
    assert all(after[item.item_id] == split for split, items in splits.items() for item in items)


def test_images_without_content_are_made_by_the_seed(tmp_path: Path) -> None:
    folder = pets(tmp_path)
    for place in ("cat/000.png", "dog/000.png"):
        (folder / place).write_bytes(noise(place, 50, 50))
    found = {}
    for seed in (1, 2):
        built(folder, tmp_path / str(seed), seed=seed)
        found[seed] = splits_of(tmp_path / str(seed))["content_free"]
    kinds = ["grey", "black", "white", "noise", "noise", "noise"]
    assert [item.content_free for item in found[1]] == kinds
    assert all(item.target is None and item.labels == ("cat", "dog") for item in found[1])
    plain = [np.asarray(decoded(item.image.bytes)) for item in found[1][:3]]
    # Of the most frequent size.
    assert [(values.shape, values.min(), values.max()) for values in plain] == [
        ((5, 6, 3), value, value) for value in (128, 0, 255)
    ]
    hashes = {seed: [item.image_sha256 for item in items] for seed, items in found.items()}
    assert hashes[1][:3] == hashes[2][:3]
    assert not set(hashes[1][3:]) & set(hashes[2][3:])


def test_train_and_test_stay_apart_and_a_limit_takes_from_test_alone(tmp_path: Path) -> None:
    counts = {f"{part}/{label}": n for part, n in (("train", 7), ("test", 4)) for label in ("cat", "train")}
    folder = image_folder(tmp_path / "pets", counts)
    built(folder, tmp_path / "out", Sizes(n_bias=2, n_pool=3, limit=7))
    splits = splits_of(tmp_path / "out")
    assert sizes_of(tmp_path / "out") == {"test": 6, "bias": 4, "pool": 6, "content_free": 6}
    for split, part in (("test", "test/"), ("bias", "train/"), ("pool", "train/")):
        assert all(item.item_id.startswith(part) for item in splits[split])
        assert len({*Counter(item.target for item in splits[split]).values()}) == 1


@pytest.mark.slow
def test_a_licence_that_allows_it_makes_a_dataset_that_libraries_read_and_others_keep_it_here(tmp_path: Path) -> None:
    manifest = built(pets(tmp_path), tmp_path / "out", licence="CC-BY-4.0")
    check_manifest(manifest)
    assert not list(problems(tmp_path / "out"))
    loaded = datasets.load_dataset(str(tmp_path / "out"), "pets", split="test", cache_dir=str(tmp_path / "cache"))
    assert isinstance(loaded.features["image"], datasets.Image)
    first = splits_of(tmp_path / "out")["test"][0]
    assert isinstance(loaded[0]["image"], Image.Image)
    assert np.array_equal(np.asarray(loaded[0]["image"]), np.asarray(decoded(first.image.bytes)))
    assert loaded[0]["labels"] == ["cat", "dog"]
    closed = built(tmp_path / "pets", tmp_path / "closed", licence="CC-BY-NC-ND-4.0")
    with pytest.raises(DataError, match="is not known to"):
        check_manifest(closed)
    assert not (tmp_path / "closed" / "croissant.json").exists()


def test_what_stands_twice_or_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    folder = image_folder(tmp_path / "pets", {f"{part}/{label}": 5 for part in ("train", "test") for label in "ab"})
    (folder / "test/a/copy.png").write_bytes(noise("test/a/0"))
    (folder / "train/a/seen.png").write_bytes(noise("test/a/1"))
    (folder / "train/b/other.png").write_bytes(noise("train/a/2"))
    with Image.open(folder / "train/b/003.png") as image:
        image.save(folder / "train/b/resaved.png", optimize=True)
    (folder / "train/a/cut.png").write_bytes(noise("x")[:40])
    (folder / "train/a/notes.txt").write_text("no image", encoding="utf-8")
    (folder / "train/a/.hidden").write_text("no image", encoding="utf-8")
    built(folder, tmp_path / "out", Sizes(1, 2))
    assert {reject.candidate: reject.rule for reject in read_rows(tmp_path / "out" / REJECTS, Reject)} == {
        "test/a/copy.png": "duplicate",
        "train/a/seen.png": "evaluated",
        "train/a/002.png": "two_labels",
        "train/b/other.png": "two_labels",
        "train/b/resaved.png": "duplicate",
        "train/a/cut.png": "unreadable",
        "train/a/notes.txt": "other_file",
    }


def saved(image: Image.Image, form: str, **options: Any) -> bytes:
    content = io.BytesIO()
    image.save(content, form, **options)
    return content.getvalue()


def photographs() -> dict[str, tuple[bytes, str]]:
    """Files as a folder of photographs holds them, each with what its reject says; empty for one that is read."""
    plain = Image.open(io.BytesIO(noise("photo", 16, 12)))
    exif = Image.Exif()
    exif[0x112] = 6
    several = {"save_all": True, "append_images": [plain.transpose(Image.Transpose.ROTATE_180)]}
    wide = np.arange(16 * 12, dtype=np.uint16).reshape(12, 16) * 300
    jpeg = saved(plain, "JPEG")
    return {
        "turned.jpg": (saved(plain, "JPEG", exif=exif), ""),
        "upright.jpg": (saved(plain.rotate(3), "JPEG", exif=Image.Exif()), ""),
        "print.jpg": (saved(plain.rotate(5).convert("CMYK"), "JPEG"), ""),
        "scan.png": (saved(Image.fromarray(wide), "PNG"), ""),
        "grey.jpg": (saved(plain.convert("L"), "JPEG"), ""),
        "moving.png": (saved(plain, "PNG", **several), "is an animation of 2 pictures; take one of them"),
        "moving.gif": (saved(plain, "GIF"), "is a file that ends in '.gif', and an image ends in .png"),
        "gif.jpg": (saved(plain, "GIF"), "is neither PNG nor JPEG (begins with b'GIF8'); convert it"),
        "cut.jpg": (jpeg[: len(jpeg) // 2], "cannot be decoded ("),
        "empty.jpg": (b"", "is neither PNG nor JPEG (begins with b''); convert it"),
        "thin.png": (saved(Image.new("RGB", (500, 2)), "PNG"), "and one side is over 100 times the other; crop it"),
    }


def test_photographs_are_read_or_refused_in_words(tmp_path: Path) -> None:
    folder = image_folder(tmp_path / "pets", {"cat": 5, "dog": 5})
    files = photographs()
    for name, (content, _) in files.items():
        (folder / "cat" / name).write_bytes(content)
    built(folder, tmp_path / "out", Sizes(1, 2))
    reasons = {reject.candidate: reject.reason for reject in read_rows(tmp_path / "out" / REJECTS, Reject)}
    items = {str(item.source_row): item for items in splits_of(tmp_path / "out").values() for item in items}
    for name, (content, said) in files.items():
        place = f"cat/{name}"
        if said:
            assert said in reasons[place], name
            assert place not in items, name
        else:
            assert items[place].image.bytes == content, name
    assert (items["cat/turned.jpg"].width, items["cat/turned.jpg"].height) == (12, 16)
    assert len(files.keys() & {place.removeprefix("cat/") for place in items}) == 5
    assert not list(problems(tmp_path / "out"))


LINK = "is a link that leads out of the folder or nowhere; put the file itself there"
NAME = "is not UTF-8 or holds a control character; rename it"


@pytest.mark.parametrize(
    ("folders", "message"),
    [
        ({}, "has no label; give at least two folders of images"),
        ({"cat": 5}, "has only the label 'cat'; give at least two folders"),
        ({"cat": 0, "dog": 0}, "holds no PNG or JPEG file in the folders"),
        ({"cat": 5, "dog": 1}, "label 'dog' has 1 image that can be used, and a"),
        ({"Cat": 5, "cat": 5}, "labels 'Cat' and 'cat' differ in case or underscores alone; rename one"),
        ({"...": 1, "--": 5, "b": 5}, "label '--' has no letter or digit"),
        ({os.fsdecode(b"a\xff"): 5, "b": 5}, rf"'a\\udcff' {NAME}"),
        ({"train/a": 5, "train/b": 5, "test/a": 5}, "label 'b' has a folder in train/ and none in test/"),
        (
            {"train/a": 5, "train/b": 1, "test/a": 5, "test/b": 5},
            "label 'b' has 5 images that can be used in test and 1 in train",
        ),
        ({f"c{n}": 1 for n in range(129)}, "has 129 labels, and a dataset has at"),
    ],
)
def test_a_folder_that_cannot_be_used_is_named(folders: dict[str, int], message: str, tmp_path: Path) -> None:
    (tmp_path / "pets").mkdir()
    image_folder(tmp_path / "pets", folders)
    with pytest.raises(DataError, match=message) as error:
        built(tmp_path / "pets", tmp_path / "out")
    assert str(error.value).startswith("--input ")
    assert not (tmp_path / "out").exists()


def test_a_file_that_leads_elsewhere_or_whose_name_hides_a_sign_is_named(tmp_path: Path) -> None:
    folder = pets(tmp_path)
    for name, target, message in (
        ("x.png", "/etc/hostname", f"'cat/x.png' {LINK}"),
        ("x.png", "x.png", f"'cat/x.png' {LINK}"),
        ("\x1b[31m.png", "", rf"'cat/\\x1b\[31m.png' {NAME}"),
    ):
        path = folder / "cat" / name
        if target:
            path.symlink_to(target)
        else:
            path.write_bytes(noise("x"))
        with pytest.raises(DataError, match=f"^--input .*{message}"):
            built(folder, tmp_path / "out")
        path.unlink()


def test_labels_keep_their_signs_and_a_limit_is_not_below_their_number(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--limit 1: leaves no image for each of 2 labels; raise it"):
        built(pets(tmp_path), tmp_path / "out", Sizes(2, 3, limit=1))
    assert label_words("sea {lion} & <b>", "here") == "sea {lion} & <b>"
    assert label_words("Größe__lang", "here") == "Größe lang"
    assert check_labels(["b_c", "a"], "here") == ("a", "b c")


@pytest.mark.slow
def test_one_hundred_labels_are_built_from_files_like_those_of_cifar(tmp_path: Path) -> None:
    fine = [f"thing_{number:03}" for number in range(100)]
    folder = cifar_folder(tmp_path / "cifar", fine, n_train=3, n_test=2)
    manifest = write_dataset(drafts.draft("hub", folder, Sizes(1, 2)), tmp_path / "out")
    assert sizes_of(tmp_path / "out") == {"test": 200, "bias": 100, "pool": 200, "content_free": 6}
    first = splits_of(tmp_path / "out")["test"][0]
    assert first.labels == tuple(sorted(name.replace("_", " ") for name in fine))
    number = int(str(first.target)[-3:])
    assert first.category == ("large things", "small things")[number % 2]
    assert manifest.parameters["is_published"] is False
    assert "the authors of CIFAR-100 give no licence" in str(manifest.publish_refusal)
    with pytest.raises(DataError, match="give no licence for its images"):
        check_manifest(manifest)
    assert not list(problems(tmp_path / "out"))


def test_files_that_are_not_like_those_of_cifar_are_named(tmp_path: Path) -> None:
    name = "cifar100/train-00000-of-00001.parquet"
    folder = cifar_folder(tmp_path / "cifar")
    parquet({"img": [b"x"]})(folder / name)
    with pytest.raises(DataError, match="is no file of CIFAR-100 as the Hub has it"):
        cifar.read_cifar(folder, None)
    (folder / name).unlink()
    with pytest.raises(DataError, match=f"no {name} here; take the files of uoft-cs/cifar100"):
        cifar.read_cifar(folder, None)


@pytest.mark.slow
def test_the_command_says_what_it_built_and_refuses_in_one_line(tmp_path: Path) -> None:
    folder = pets(tmp_path, 9)
    said = run("--input", folder, "--out", tmp_path / "out", "--bias-per-label", "2", "--pool-per-label", "2")
    assert "image-labels-pets 1.0.0 from source folder:" in said
    assert "pets: 2 labels with 5 to 5 images to evaluate each; test 10, bias 4, pool 4, content_free 6" in said
    assert "warning: the pool has 2 images of some label, and calibrations that are fitted on fewer than 20" in said
    assert "not for publishing: the licence of the images is not known" in said
    for arguments, message in (
        (("--input", folder, "--revision", "x"), "error: --revision x: the folder source has no use for it"),
        (("--source", "hub", "--input", folder, "--licence", "MIT"), "error: --licence MIT: the hub source has no"),
    ):
        refused = run(*arguments, status=1)
        assert message in refused
        assert refused.count("\n") == 1
