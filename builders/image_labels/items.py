"""Draws the splits of a dataset of images, with equally many images of each label if there are enough."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from biasboard.ground.errors import ConfigError, DataError
from builders.dataset.output import rng_for
from builders.image_labels.images import Sound
from schemas.documents.base import EncodedImage
from schemas.files import pictures
from schemas.items.image import ImageItem, NoContent

SPLITS = ("test", "bias", "pool", "content_free")
"""Names of the splits, in the order in which they are written."""
N_BIAS, N_POOL = 10, 50
"""Default numbers of images of each label in the splits bias and pool."""
N_NOISE = 3
_PLAIN: Mapping[NoContent, int] = {"grey": 128, "black": 0, "white": 255}
_MOST_SIDE = 256


class Sizes(NamedTuple):
    """The requested numbers of images."""

    n_bias: int = N_BIAS
    """Number of images of each label in the split bias."""
    n_pool: int = N_POOL
    limit: int | None = None
    """Largest number of images in the split test; None for all."""


DEFAULT_SIZES = Sizes()


def draw(
    usable: Mapping[str, Sequence[Sound]],
    labels: Sequence[str],
    sizes: Sizes,
    *,
    is_parted: bool,
    seed: int,
    where: str,
) -> dict[str, list[Sound]]:
    """Draw the images of test, bias and pool.

    The split of an image depends only on the seed and the images of its own label. ``is_parted`` is True if the source
    itself says which images to evaluate on; otherwise they are drawn from ``train``.

    Raises:
        ConfigError: the limit leaves no image for each label.
        DataError: a label has too few images.
    """
    per_label = None if sizes.limit is None else sizes.limit // len(labels)
    if per_label == 0:
        raise ConfigError(f"--limit {sizes.limit}: leaves no image for each of {len(labels)} labels; raise it")
    parts: dict[str, list[Sound]] = {"test": [], "bias": [], "pool": []}
    for label in labels:
        train, test = (
            _permuted([image for image in usable[part] if image.candidate.label == label], seed, f"{part}:{label}")
            for part in ("train", "test")
        )
        n_wanted = sizes.n_bias + sizes.n_pool
        if is_parted:
            support = train[:n_wanted]
        else:
            n_support = min(n_wanted, len(train) // 2) if len(train) > 3 else 2
            support, test = train[:n_support], train[n_support:]
        _check_label(label, test, support, is_parted=is_parted, where=where)
        n_bias = min(sizes.n_bias, max(1, len(support) * sizes.n_bias // n_wanted))
        parts["bias"] += support[:n_bias]
        parts["pool"] += support[n_bias:]
        parts["test"] += test[:per_label]
    return {name: _permuted(images, seed, name) for name, images in parts.items()}


def _check_label(label: str, test: Sequence[Sound], support: Sequence[Sound], *, is_parted: bool, where: str) -> None:
    n = len(test) + len(support)
    if not is_parted and n < 3:
        usable = "1 image" if n == 1 else f"{n} images"
        raise DataError(
            f"{where}: label '{label}' has {usable} that can be used, and a label needs at least 3: one to evaluate "
            "and two to measure bias and to calibrate on; add images, or remove the label"
        )
    if is_parted and (not test or len(support) < 2):
        raise DataError(
            f"{where}: label '{label}' has {len(test)} images that can be used in test and {len(support)} in train, "
            "and a label needs at least 1 and 2; add images, or remove the label"
        )


def _permuted(images: Sequence[Sound], seed: int, name: str) -> list[Sound]:
    return [images[index] for index in rng_for(seed, name).permutation(len(images)).tolist()]


def items_of(images: Sequence[Sound], labels: tuple[str, ...]) -> list[ImageItem]:
    """Return images as items; their files are read again, since only hashes were kept."""
    return [
        ImageItem(
            item_id=image.candidate.path,
            image=EncodedImage(bytes=image.candidate.read(), path=None),
            image_sha256=image.sha256,
            width=image.width,
            height=image.height,
            labels=labels,
            target=image.candidate.label,
            category=image.candidate.category,
            content_free=None,
            source_row=image.candidate.path,
            flags=(),
        )
        for image in images
    ]


def content_free_items(test: Sequence[Sound], labels: tuple[str, ...], config: str, seed: int) -> list[ImageItem]:
    """Return images of one colour and of noise, of the most frequent size of the evaluated images."""
    counts = Counter((image.width, image.height) for image in test)
    width, height = (min(side, _MOST_SIDE) for side in min(counts, key=lambda size: (-counts[size], size)))
    rng = rng_for(seed, "noise")
    empty: list[tuple[NoContent, np.ndarray[Any, np.dtype[np.uint8]]]] = [
        *((kind, np.full((height, width, 3), value, dtype=np.uint8)) for kind, value in _PLAIN.items()),
        *(("noise", rng.integers(0, 256, (height, width, 3), dtype=np.uint8)) for _ in range(N_NOISE)),
    ]
    items = []
    for number, (kind, pixels) in enumerate(empty):
        content = pictures.png(pixels)
        items.append(
            ImageItem(
                item_id=f"{config}-content-free-{number:02}",
                image=EncodedImage(bytes=content, path=None),
                image_sha256=hashlib.sha256(content).hexdigest(),
                width=width,
                height=height,
                labels=labels,
                target=None,
                category=None,
                content_free=kind,
                source_row=None,
                flags=(),
            )
        )
    return items
