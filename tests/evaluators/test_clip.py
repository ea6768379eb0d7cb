"""The backend clip on a model with random weights: its answers are the softmax that the model itself gives."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from biasboard.ground.errors import ConfigError
from evaluators.backend import ChoiceRequest, GenerateRequest, Request, image_prompt
from evaluators.backend_options import BackendOptions
from evaluators.backends.clip import ClipBackend
from evaluators.backends.clip import open_backend as open_clip
from evaluators.runs.measure.recording import exchange_of
from evaluators.stores.store import STORE, ResponseStore
from evaluators.task import Asked
from evaluators.tasks.images.image_classification_task import TASK
from schemas.documents.record import choice_sha256
from schemas.files import pictures
from tests.evaluators.asking import all_answers_of, answers_of, groups_of
from tests.evaluators.test_model_files import settings
from tests.evaluators.tiny_clip import (
    MOST_TOKENS,
    SCALE,
    SIDE,
    assert_equal_but_for_rounding,
    made_item,
    noise,
    save_tiny_clip,
)

pytest.importorskip("torch", reason="the extra hf is not installed")
LABELS = ("cat", "dog", "sea {lion}", "Größe & <b>")
CPU = BackendOptions(device="cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_clip(tmp_path_factory.mktemp("clip") / "tiny")


@pytest.fixture(scope="module")
def backend(folder: Path) -> ClipBackend:
    return open_clip(str(folder), CPU)


def asked(prompt: str, n: int = 7, labels: Sequence[str] = LABELS) -> list[Request]:
    items = [made_item(noise(seed), labels, labels[0], f"item-{seed}") for seed in range(n)]
    return [request for item in items for request in TASK.requests(item, Asked(TASK.prompts[prompt]))]


def matrix(backend: ClipBackend, requests: Sequence[Request]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The probabilities that the task reads from the answers, shape (n, k)."""
    rows = []
    for request, answer in zip(requests, all_answers_of(backend, requests), strict=True):
        read = TASK.read([exchange_of(request, answer, show_prompt=True, chat=False)], "sum")
        assert read.reading is not None, read.reason
        assert read.reading.outcomes == request.outcomes
        rows.append(read.reading.probabilities)
    return np.array(rows)


def direct(folder: Path, contents: Sequence[bytes], texts: Sequence[Sequence[str]]) -> Any:
    """The softmax of the logits that transformers itself computes, with a mean over the texts of each label."""
    import torch
    from transformers import AutoImageProcessor, AutoTokenizer, CLIPModel

    network = CLIPModel.from_pretrained(folder)
    network.train(False)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    processor = AutoImageProcessor.from_pretrained(folder, backend="pil")  # type: ignore[no-untyped-call]
    pixels = [processor(pictures.decoded(one), return_tensors="pt").pixel_values for one in contents]
    with torch.inference_mode():
        if all(len(of_label) == 1 for of_label in texts):
            inputs = tokenizer([text for (text,) in texts], padding=True, return_tensors="pt")
            logits = torch.cat([network(**inputs, pixel_values=one).logits_per_image for one in pixels])
            return logits.double().softmax(dim=-1).numpy()
        flat = tokenizer([text for of_label in texts for text in of_label], padding=True, return_tensors="pt")
        each = network.get_text_features(**flat).pooler_output
        means = (each / each.norm(dim=-1, keepdim=True)).reshape(len(texts), -1, each.shape[-1]).mean(dim=1)
        seen = torch.cat([network.get_image_features(pixel_values=one).pooler_output for one in pixels])
        cosines = (seen / seen.norm(dim=-1, keepdim=True)) @ (means / means.norm(dim=-1, keepdim=True)).T
        return (network.logit_scale.exp() * cosines).double().softmax(dim=-1).numpy()


@pytest.mark.slow
@pytest.mark.parametrize("prompt", list(TASK.prompts))
def test_the_matrix_is_the_softmax_of_the_model(folder: Path, backend: ClipBackend, prompt: str) -> None:
    (template,) = TASK.prompts[prompt].options
    texts = [[line.replace("{label}", label) for line in template.split("\n")] for label in LABELS]
    found = matrix(backend, asked(prompt))
    assert_equal_but_for_rounding(found, direct(folder, [noise(seed) for seed in range(7)], texts))
    # The model has preferences that differ from image to image, so that agreeing says something.
    assert found.max(axis=1).min() > 0.3
    assert np.ptp(found, axis=0).max() > 0.1


def test_batches_and_resumed_runs_change_nothing_that_matters(folder: Path, backend: ClipBackend) -> None:
    requests = asked("photo-v1")
    whole = matrix(backend, requests)
    single = open_clip(str(folder), BackendOptions(device="cpu", batch_images=1))
    assert_equal_but_for_rounding(matrix(single, requests), whole)
    by_three = open_clip(str(folder), BackendOptions(device="cpu", batch_images=3))
    assert [sorted(group.responses) for group in groups_of(by_three, requests)] == [[0, 1, 2], [3, 4, 5], [6]]
    # A killed run stored the first batch: the others are computed in the same batches, to the bit.
    left = answers_of(by_three, requests, frozenset(range(3, 7)))
    assert left[:3] == [None] * 3
    assert left[3:] == all_answers_of(by_three, requests)[3:]
    assert single.model.identity_sha256 == backend.model.identity_sha256


def test_the_request_names_the_image_and_never_holds_its_bytes(tmp_path: Path, backend: ClipBackend) -> None:
    content = noise(0)
    item = made_item(content, LABELS, "cat")
    (request,) = TASK.requests(item, Asked(TASK.prompts["photo-v1"]))
    assert isinstance(request, ChoiceRequest)
    assert request.prompt == image_prompt(item.image_sha256) == f"image sha256:{item.image_sha256}"
    assert request.sha256 == choice_sha256(request.prompt, request.options)
    bare = ChoiceRequest(prompt=request.prompt, options=request.options, outcomes=request.outcomes)
    assert bare.sha256 == request.sha256
    assert repr(content)[2:40] not in repr(request)
    with ResponseStore(tmp_path / STORE, backend.model) as store:
        store.add({b"0" * 32: (request, all_answers_of(backend, [request])[0])}, 0.0)
    stored = (tmp_path / STORE).read_bytes()
    assert item.image_sha256.encode() in stored
    assert content[:64] not in stored
    assert b'"image"' not in stored


@pytest.mark.parametrize("size", [(1, 3), (64, 48)])
def test_images_of_few_pixels_are_not_taken_for_others(
    folder: Path, backend: ClipBackend, size: tuple[int, int]
) -> None:
    """Arrays with one or three rows could be read with their axes in another order."""
    content = noise(1, *size)
    (request,) = TASK.requests(made_item(content, LABELS, "cat"), Asked(TASK.prompts["label-v1"]))
    picture = pictures.decoded(content)
    width, height = (side * SIDE // min(size) for side in size)
    left, top = (width - SIDE) // 2, (height - SIDE) // 2
    scaled = picture.resize((width, height), Image.Resampling.BICUBIC)
    seen = pictures.png(np.asarray(scaled.crop((left, top, left + SIDE, top + SIDE))))
    assert_equal_but_for_rounding(matrix(backend, [request]), direct(folder, [seen], [[label] for label in LABELS]))


def test_what_is_no_image_or_too_long_fails_alone_and_only_sums_mean_anything(backend: ClipBackend) -> None:
    requests = asked("photo-v1", 3)
    broken = made_item(noise(1)[:100], LABELS, "cat")
    requests[1:2] = TASK.requests(broken, Asked(TASK.prompts["photo-v1"]))
    long = "very " * 12 + "long"
    requests += [GenerateRequest(prompt="A cat", max_tokens=3), *asked("photo-v1", 1, ("cat", long))]
    answers = all_answers_of(backend, requests)
    assert [answer.status for answer in answers] == ["answered", "failed", "answered", "failed", "failed"]
    assert str(answers[1].error).startswith("the image cannot be decoded (")
    assert "a CLIP model answers about images only" in str(answers[3].error)
    assert backend.context_tokens == MOST_TOKENS
    (needed,) = backend.needed_tokens(requests[4:])
    # One token per letter, and one for each end.
    assert needed == len(f"a photo of a {long}.".replace(" ", "")) + 2 > MOST_TOKENS
    assert answers[4].error == f"the image has an option of {needed} tokens, and the model takes {MOST_TOKENS}"
    read = TASK.read([exchange_of(requests[0], answers[0], show_prompt=True, chat=False)], "byte_mean")
    assert (read.status, "use the normalisation sum" in str(read.reason)) == ("failed", True)


PROCESSOR = "preprocessor_config.json"
FAULTS: list[tuple[Callable[[Path], object], str]] = [
    (settings(PROCESSOR, size={"shortest_edge": 10**6}), "makes pictures of 1000000 pixels a side, and the model"),
    (settings(PROCESSOR, size={"shortest_edge": -5}), "makes pictures of -5 pixels a side, and the model takes 32"),
    (settings(PROCESSOR, resample=99), r"its image processor cannot read a picture \("),
    (settings(PROCESSOR, do_resize=False, do_center_crop=False), r"makes pictures of shape \(1, 3, 33, 64\), and the"),
    (lambda folder: (folder / PROCESSOR).unlink(), "its tokenizer or image processor cannot be loaded"),
    (settings("config.json", model_type="siglip"), "is of the type 'siglip', and no CLIP model"),
]


@pytest.mark.parametrize(("change", "message"), FAULTS)
def test_a_folder_that_is_no_whole_clip_model_is_refused(
    folder: Path, change: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    change(tmp_path / "copy")
    with pytest.raises(ConfigError, match=message) as error:
        open_clip(str(tmp_path / "copy"), CPU)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_options_of_others_are_refused_and_its_own_open_it_again(folder: Path, backend: ClipBackend) -> None:
    with pytest.raises(ConfigError, match="backend 'clip' has no use for --chat"):
        open_clip(str(folder), BackendOptions(chat=True))
    half = open_clip(str(folder), BackendOptions(dtype="bfloat16", device="cpu", batch_images=5))
    assert half.arguments == ("--model tiny", "--dtype bfloat16", "--device cpu", "--batch-images 5")
    assert half.model.precision == "bfloat16"
    assert half.model.identity_sha256 != backend.model.identity_sha256
    # Similarities stay exact enough to compare: rounding to bfloat16 moves cosines by less than 2 %.
    difference = np.abs(np.log(matrix(half, asked("photo-v1"))) - np.log(matrix(backend, asked("photo-v1"))))
    assert 0 < difference.max() < 0.02 * SCALE
