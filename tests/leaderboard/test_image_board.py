"""The board of image_labels, from images to pages in a browser."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from schemas.folders.dataset_folder import read_manifest, read_split
from schemas.items.image import ImageItem
from tests.builders.image_files import cifar_folder
from tests.commands import output_of
from tests.evaluators.tiny_clip import save_digits, save_tiny_clip, teach
from tests.leaderboard.browsing import served, visit
from tests.worlds import copy_site

pytest.importorskip("torch", reason="the extra hf is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.browser]
LABELS = ("A", "a bad <b>label</b>", "sea {lion}")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with a dataset that may be shown, one that may not, two models and the baselines."""
    root = tmp_path_factory.mktemp("image-board")
    datasets, runs = root / "datasets", root / "runs"
    sizes = ("--pool-per-label", "15", "--bias-per-label", "5")
    digits = save_digits(root / "digits", 40)
    shown = ("--input", digits, "--out", datasets / "digits", "--licence", "CC0-1.0")
    output_of("-m", "builders.image_labels", *shown, *sizes)
    withheld = ("--source", "hub", "--input", cifar_folder(root / "cifar", LABELS), "--out", datasets / "cifar")
    output_of("-m", "builders.image_labels", *withheld, *sizes)
    save_tiny_clip(root / "untaught")
    manifest = read_manifest(datasets / "digits")
    (pool,) = (entry for entry in manifest.splits if entry.split == "pool")
    images = [item for item in read_split(datasets / "digits", pool) if isinstance(item, ImageItem)]
    teach(save_tiny_clip(root / "taught"), images)
    for dataset, model in (("digits", "taught"), ("digits", "untaught"), ("cifar", "taught")):
        opened = ("--model", root / model, "--name", f"lab/{model}", "--device", "cpu")
        asked = ("-m", "evaluators", "run", "--dataset", datasets / dataset, "--out", runs)
        output_of(*asked, "--backend", "clip", *opened)
    copy_site(root)
    folders = ("--runs", runs, "--datasets", datasets, "--results", root / "none")
    output_of("-m", "leaderboard", "build", *folders, "--site", root / "site", "--out", root / "built")
    return root / "built"


def test_answers_name_images_by_their_hash_where_the_licence_allows_it(built: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted(built.rglob("*.html"))]
    # Names of labels are texts, whatever they hold.
    assert not [text for text in texts if "<b>label</b>" in text]
    source = "".join(path.read_text(encoding="utf-8") for path in (built / "models" / "lab__taught").glob("*.html"))
    page = html.unescape(source)
    assert re.search(r"image sha256:[0-9a-f]{64}", page)
    assert "a photo of a seven.: −" in page  # noqa: RUF001
    assert "give no licence for its images" in page
    # Those of the dataset that is withheld stand in no answer.
    assert "a photo of a sea {lion}" not in page
    assert not [path for path in built.rglob("*.png") if "assets" not in path.parts]


def test_a_model_that_learned_is_ranked_and_the_explorer_shows_images_by_hash(built: Path, browser: Browser) -> None:
    with served(built) as address:
        found = visit(browser, f"{address}benchmarks/image_labels.html")
        assert found.complaints == []
        table = found.page.locator("table", has_text="Macro-F1").first
        headings = " ".join(table.locator("th").all_inner_texts())
        for heading in ("Macro-F1", "Accuracy", "Gini index", "Gini index by chance", "Smallest class accuracy"):
            assert heading in headings
        rows = found.page.locator("table tr", has=found.page.locator("a[title='lab/taught']")).all_inner_texts()
        assert any(re.match(r"\s*1\b", row) for row in rows), rows
        (untaught, *_) = found.page.locator(
            "table tr", has=found.page.locator("a[title='lab/untaught']")
        ).all_inner_texts()
        assert re.search("(worse|better) than the baseline", untaught)
        assert "Guessing evenly has no larger Gini index than chance gives" in found.page.inner_text("body")
        assert "Lin, Ruixi" in found.page.content()
        # The figures of the paper: accuracies of classes, and Lorenz curves, before and after reweighting.
        shown = " ".join(image.get_attribute("alt") or "" for image in found.page.locator("img").all())
        for words in ("Worst quarter: none from", "uncorrected: ", "Gini reweighting: "):
            assert words in shown
        page = visit(browser, f"{address}answers.html").page
        page.wait_for_selector("text=image sha256:")
        assert "Kind of image" in page.inner_text("body")
        assert page.locator("text=image sha256:").count() >= 10
