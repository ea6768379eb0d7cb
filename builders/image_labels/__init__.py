"""Builder of the benchmark image_labels: how evenly does a model of images and texts recognise the classes of images?

The model gets the labels as texts and chooses one of them for each image, without examples. Each dataset has one
config, whose splits are:

* test: images to evaluate on;
* bias: images on which the bias towards labels is measured;
* pool: images on which calibrations are fitted;
* content_free: images of one colour and of noise, on which contextual calibration estimates the prior.

arXiv:2603.15654 measures CLIP on CIFAR-100 in this way. The benchmark is about classes of images, not groups of people.

*folder* and *cifar* read the sources, *images* rejects unreadable and duplicate images, *items* draws the splits, and
*drafts* combines them with the texts of the card.
"""

from __future__ import annotations

from builders.description import Builder, BuilderSource

BUILDER = Builder(
    name="image_labels",
    summary="zero-shot classification of images: CIFAR-100, or any folder of images",
    sources=(
        BuilderSource(
            name="folder",
            dataset="image-labels",
            summary="a folder of images, with one folder for each label (default)",
            input="a folder with one folder of PNG or JPEG files for each label, or with train/ and test/ of such",
            licence="that of the images",
            redistributable=True,
        ),
        BuilderSource(
            name="hub",
            dataset="image-labels-cifar100",
            summary="CIFAR-100 of the Hugging Face Hub",
            input="a folder with the parquet files of uoft-cs/cifar100, or that id for the Hub",
            licence="unknown",
            redistributable=False,
        ),
    ),
)
