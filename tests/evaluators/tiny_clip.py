"""A CLIP model with random weights, and images that the tests make."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schemas.documents.base import EncodedImage
from schemas.files import pictures
from schemas.items.image import ImageItem

SIDE = 32
"""Width and height of the pictures that the model takes, in pixels."""
MOST_TOKENS = 48
SCALE = math.exp(4.6)
"""Factor of cosines: a trained model multiplies them by 100; a random one then has clear preferences."""


def rounding(scale: float = SCALE) -> float:
    """Return how far two log-probabilities of one text may lie apart where nothing but float32 tells them apart.

    Processors, numbers of threads and sizes of batches add up in different orders. About 32 operations in a row make an
    embedding of these models (12 in each of two layers, and 8 around them), and each rounds it by about one eps of its
    length. Such errors are independent, so that all together are about sqrt(32) = 6 eps: against double precision, the
    largest of 440 images are 4 to 8 eps with SSE, AVX2 and AVX-512. Twice that in each of two computations puts their
    embeddings at most e = 32 eps apart. From there on the bounds are exact:

    - Each of two embeddings of length one moves a cosine by at most e (Cauchy and Schwarz), so both by 2 e.
    - A similarity is the scale times a cosine, and a difference of two similarities moves by at most d = 4 scale e.
    - -log p_a is log(sum_b exp(s_b - s_a)), which moves by at most d if no difference s_b - s_a moves by more.
    - p_a itself moves by at most d / 4: its derivative is p_a (1 - p_a) <= 1/4 times a mean of changes of s_a - s_b.
    """
    return 4 * scale * 32 * float(np.finfo(np.float32).eps)


def assert_equal_but_for_rounding(found: Any, expected: Any, scale: float = SCALE) -> None:
    """Compare two arrays of probabilities of texts, and their logarithms, in which small ones count as much."""
    np.testing.assert_allclose(np.log(found), np.log(expected), rtol=0, atol=rounding(scale))
    np.testing.assert_allclose(found, expected, rtol=0, atol=rounding(scale) / 4)


def save_tiny_clip(folder: Path, *, seed: int = 0) -> Path:
    """Save a model, a tokenizer whose tokens are letters, and an image processor."""
    import torch
    from transformers import CLIPConfig, CLIPModel, CLIPTokenizer

    folder.mkdir(parents=True)
    letters = [chr(code) for code in range(33, 127)]
    special = ["<|startoftext|>", "<|endoftext|>"]
    words = [*letters, *(f"{letter}</w>" for letter in letters), *special]
    vocabulary = {word: place for place, word in enumerate(words)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    tokenizer = CLIPTokenizer.from_pretrained(folder, model_max_length=MOST_TOKENS)
    tokenizer.save_pretrained(folder)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    ends = {"bos_token_id": vocabulary[special[0]], "eos_token_id": vocabulary[special[1]]}
    config = CLIPConfig(
        text_config={**size, **ends, "vocab_size": len(words), "max_position_embeddings": MOST_TOKENS},
        vision_config={**size, "image_size": SIDE, "patch_size": 8},
        projection_dim=16,
        logit_scale_init_value=math.log(SCALE),
    )
    torch.manual_seed(seed)
    network = CLIPModel(config)
    with torch.no_grad():
        for weights in network.parameters():
            if weights.dim() > 1:
                weights.normal_(0.0, 0.2)
    network.save_pretrained(folder)
    processor = {
        "image_processor_type": "CLIPImageProcessor",
        "size": {"shortest_edge": SIDE},
        "crop_size": {"height": SIDE, "width": SIDE},
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(processor), encoding="utf-8")
    return folder


def made_item(content: bytes, labels: Sequence[str], target: str | None, name: str = "one") -> ImageItem:
    """An item with an image."""
    return ImageItem(
        item_id=name,
        image=EncodedImage(bytes=content, path=None),
        image_sha256=hashlib.sha256(content).hexdigest(),
        width=1,
        height=1,
        labels=tuple(labels),
        target=target,
        category="made",
        content_free="noise" if target is None else None,
        source_row=None,
        flags=(),
    )


def noise(seed: int, width: int = 20, height: int = 20) -> bytes:
    """A PNG file of random pixels."""
    return pictures.png(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


def teach(folder: Path, items: Sequence[ImageItem], *, n_steps: int = 150) -> None:
    """Train a saved model to name the labels of images, so that it is better than chance."""
    import torch
    from transformers import AutoImageProcessor, AutoTokenizer, CLIPModel

    network = CLIPModel.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    processor = AutoImageProcessor.from_pretrained(folder, backend="pil")  # type: ignore[no-untyped-call]
    labels = items[0].labels
    texts = tokenizer([f"a photo of a {label}." for label in labels], padding=True, return_tensors="pt")
    pixels = processor([pictures.decoded(item.image.bytes) for item in items], return_tensors="pt").pixel_values
    targets = torch.tensor([labels.index(item.target or "") for item in items])
    torch.manual_seed(0)
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3)
    for step in range(n_steps):
        rows = torch.randint(len(items), (64,), generator=torch.Generator().manual_seed(step))
        logits = network(**texts, pixel_values=pixels[rows]).logits_per_image
        loss = torch.nn.functional.cross_entropy(logits, targets[rows])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    network.save_pretrained(folder)


def save_digits(folder: Path, n_per_label: int) -> Path:
    """Save images of handwritten digits that scikit-learn brings along, one folder for each label."""
    from PIL import Image
    from sklearn.datasets import load_digits

    digits = load_digits()
    names = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    counts = dict.fromkeys(names, 0)
    for values, target in zip(digits.images, digits.target, strict=True):
        name = names[target]
        if counts[name] < n_per_label:
            path = folder / name / f"{counts[name]:03}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray((values * 15).astype(np.uint8)).save(path)
            counts[name] += 1
    return folder
