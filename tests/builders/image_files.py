"""Folders of images and files in the layout of CIFAR-100, of random pixels."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.files.pictures import png

_STRUCT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def noise(name: str, width: int = 6, height: int = 5) -> bytes:
    """A PNG file whose pixels follow from a name."""
    return png(np.random.default_rng(list(os.fsencode(name))).integers(0, 256, (height, width, 3), dtype=np.uint8))


def image_folder(folder: Path, counts: Mapping[str, int]) -> Path:
    """Write as many images into each folder, such as ``cat`` or ``test/cat``."""
    for name, n in counts.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(n):
            (folder / name / f"{number:03}.png").write_bytes(noise(f"{name}/{number}"))
    return folder


def cifar_folder(
    folder: Path, fine: Sequence[str] = ("lawn_mower", "sweet_pepper", "oak_tree"), n_train: int = 9, n_test: int = 4
) -> Path:
    """Write the two files of CIFAR-100 with other images and labels, and two superclasses."""
    names = {"fine_label": list(fine), "coarse_label": ["large_things", "small_things"]}
    features = {
        "img": {"_type": "Image"},
        **{column: {"_type": "ClassLabel", "names": values} for column, values in names.items()},
    }
    told = {"huggingface": json.dumps({"info": {"features": features}})}
    fields = [("img", _STRUCT), ("fine_label", pa.int64()), ("coarse_label", pa.int64())]
    for part, n in (("train", n_train), ("test", n_test)):
        rows = [
            {
                "img": {"bytes": noise(f"{part}/{label}/{number}"), "path": None},
                "fine_label": label,
                "coarse_label": label % 2,
            }
            for number in range(n)
            for label in range(len(fine))
        ]
        path = folder / "cifar100" / f"{part}-00000-of-00001.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(fields, metadata=told)), path)
    return folder
