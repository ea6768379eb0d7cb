"""The texts of the cards of datasets of images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from builders.dataset.card import Annotation, Card, CardTable
from builders.image_labels.checking import Sound
from builders.image_labels.items import Drawn

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


class Texts(NamedTuple):
    """The texts that depend on the source."""

    title: str
    how_built: str
    licence_terms: str
    known_limits: str
    citation: str


def image_card(drawn: Drawn, labels: Sequence[str], texts: Texts) -> Card:
    """Return a card, adding the parts that all sources share."""
    return Card(
        data_statement=_DATA_STATEMENT,
        how_built=f"{texts.how_built}\n\n{_HOW_BUILT}",
        annotation=_ANNOTATION,
        biases=_BIASES,
        licence_terms=texts.licence_terms,
        intended_use=_INTENDED_USE,
        out_of_scope_use=_OUT_OF_SCOPE_USE,
        known_limits=texts.known_limits,
        balance=_balance(drawn, labels),
        citation=f"Cite this project with the dataset version, {texts.citation}.",
        task_categories=("zero-shot-image-classification",),
        tags=("label-bias", "calibration", "bias-evaluation"),
    )


def _balance(drawn: Drawn, labels: Sequence[str]) -> CardTable:
    counts = [_counts(images) for images in (drawn.test, drawn.bias, drawn.pool)]
    rows = [(label, *(str(of_split[label]) for of_split in counts)) for label in labels]
    return CardTable(header=("label", "test", "bias", "pool"), rows=tuple(rows))


def _counts(images: Sequence[Sound]) -> Counter[str]:
    return Counter(one.candidate.label for one in images)
