"""Makes the draft of a dataset from each source, with the texts of its card."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

from biasboard.ground.progress import Report, silent
from builders.dataset.card import Annotation, Card, CardTable, SourceTexts
from builders.dataset.licences import UNKNOWN, licence_terms, publish_refusal
from builders.dataset.output import Draft, DraftSplit
from builders.image_labels import BUILDER
from builders.image_labels.cifar import HUB_ID, read_cifar
from builders.image_labels.folder import read_folder
from builders.image_labels.images import RULES, check_images
from builders.image_labels.items import DEFAULT_SIZES, SPLITS, Sizes, content_free_items, draw, items_of
from schemas.items.image import ImageItem

_CIFAR_REFUSAL = (
    "the authors of CIFAR-100 give no licence for its images, which were collected from the web; publish scores and "
    "hashes in place of the images"
)
_PAPER = "arXiv:2603.15654, which measures CIFAR-100 with CLIP"

_DATA_STATEMENT = """\
Images with one label each, and the labels that any of them may get, as English words where the source has such. Split
`test` is evaluated; on `bias` the bias towards labels is measured; on `pool` calibrations are fitted; `content_free`
holds images of one colour and of noise, made by the seed of the build, which have no right label. `image` is the file
of the source byte for byte, and `image_sha256` is its hash, by which requests and records name it."""

_HOW_BUILT = """\
Labels are the names of the source with spaces in place of underscores, sorted. Every file is opened: what cannot be
read is rejected, and so are images whose pixels stand twice, whatever their file formats; `test` goes before the other
splits. The images of a label are permuted by the seed of the build and the name of the label; of those that are not set
apart to evaluate on, the first are `bias` and the next are `pool`. What a model sees is the picture upright, in three
channels of 8 bits, on white where it is transparent (`schemas/files/pictures.py`)."""

_INTENDED_USE = """\
To measure how evenly a model recognises classes of images without training on them, beside how often it is right, and
to compare calibrations and decision rules. A model that answers at random is even too: always read both."""

_OUT_OF_SCOPE_USE = """\
Do not read a good score as the absence of bias against people: classes of images are compared here, not groups of
people. Do not train on it a model that is evaluated on it."""

_BIASES = """\
* The images show what their source happened to collect.
* A model may have been trained on these very images: those of well-known data sets are all over the web."""

_ANNOTATION = Annotation(
    protocol="The right label of an image is the one that its source gives; nothing was annotated again.",
    annotators="Those who made the source.",
    per_item="1 that is kept",
)


_CIFAR = SourceTexts(
    title="CIFAR-100",
    how_built=(
        f"CIFAR-100 as `{HUB_ID}` on the Hub has it: fine labels, with the superclass of each as its category. "
        "Split `test` is from its test part; `bias` and `pool` are from its training part."
    ),
    licence_terms=f"**No licence.** {_CIFAR_REFUSAL[0].upper()}{_CIFAR_REFUSAL[1:]}.",
    known_limits=(
        "* The images have 32 x 32 pixels, and models enlarge them.\n"
        "* How many training images arXiv:2603.15654 fitted on, and which texts it named the labels by, is not "
        "published: values cannot be compared with its own."
    ),
    citation=(
        "Krizhevsky 2009, *Learning Multiple Layers of Features from Tiny Images* (University of Toronto), and "
        f"{_PAPER}"
    ),
)


def draft(
    source: Literal["folder", "hub"],
    path: Path,
    sizes: Sizes = DEFAULT_SIZES,
    *,
    licence: str | None = None,
    revision: str | None = None,
    seed: int = 42,
    report: Report = silent,
) -> Draft[ImageItem]:
    """Return the draft of a dataset of the images of a folder, or of CIFAR-100.

    Args:
        source: ``hub`` for CIFAR-100.
        path: Folder with one folder for each label, or train/ and test/ that each hold such folders. Of CIFAR-100 the
            folder with its files, or its id on the Hub.
        sizes: Requested numbers of images.
        licence: SPDX identifier of the licence of the images of a folder as the user states it; None if not known.
        revision: Commit of CIFAR-100 on the Hub; None for the default one, and for its files.
        seed: Seed of the splits and of the images of noise.
        report: Called with the progress.

    Raises:
        ConfigError: the limit leaves no image for each label.
        DataError: the folder or one of its labels cannot be used, or files cannot be downloaded.
    """
    refusal: str | None = _CIFAR_REFUSAL
    if source == "hub":
        content, texts = read_cifar(path, revision), _CIFAR
    else:
        content, refusal = read_folder(path, licence), publish_refusal(licence, "images")
        texts = SourceTexts(
            title=f"Images of {content.name}",
            how_built="Taken from a folder of images with one folder for each label.",
            licence_terms=licence_terms(licence, "images"),
            known_limits="Nothing is known about where the images come from.",
            citation=f"the source of the images, and {_PAPER}",
        )
    described, labels = BUILDER.source(source), content.labels
    usable, rejects = check_images(content, report)
    drawn = draw(usable, labels, sizes, is_parted=content.test is not None, seed=seed, where=content.where)
    items = {split: items_of(images, labels) for split, images in drawn.items()}
    items["content_free"] = content_free_items(drawn["test"], labels, content.name, seed)
    counts = [Counter(image.candidate.label for image in images) for images in drawn.values()]
    rows = tuple((label, *(str(of_split[label]) for of_split in counts)) for label in labels)
    return Draft(
        name=described.dataset if source == "hub" else f"{described.dataset}-{content.name}",
        benchmark=BUILDER.name,
        title=texts.title,
        builder=f"builders.{BUILDER.name} ({source})",
        parameters={
            "source": source,
            "limit": sizes.limit,
            "bias_per_label": sizes.n_bias,
            "pool_per_label": sizes.n_pool,
            "licence": licence if licence != UNKNOWN else None,
            "n_labels": len(labels),
            "is_published": content.is_published,
        },
        seed=seed,
        sources=content.sources,
        licence=licence or UNKNOWN,
        publish_refusal=refusal,
        splits=tuple(
            DraftSplit(config=content.name, split=split, item_shape="image", items=items[split]) for split in SPLITS
        ),
        rejects=tuple(rejects),
        reject_rules=RULES,
        card=Card(
            data_statement=_DATA_STATEMENT,
            how_built=f"{texts.how_built}\n\n{_HOW_BUILT}",
            annotation=_ANNOTATION,
            biases=_BIASES,
            licence_terms=texts.licence_terms,
            intended_use=_INTENDED_USE,
            out_of_scope_use=_OUT_OF_SCOPE_USE,
            known_limits=texts.known_limits,
            balance=CardTable(header=("label", *drawn), rows=rows),
            citation=f"Cite this project with the dataset version, {texts.citation}.",
            task_categories=("zero-shot-image-classification",),
            tags=("label-bias", "calibration", "bias-evaluation"),
        ),
    )
