"""Asks an image-text model which of several texts describes an image, without examples.

A prompt is one template or several for the texts of the labels. The model rates the similarity of each filled template
to the image; the reading is the softmax over the labels of the similarities times the model's learned factor (Radford
et al. 2021, arXiv:2103.00020, CLIP). With several templates, the option of a label has a line for each, and is compared
by the mean of their embeddings, as the authors do.

arXiv:2603.15654, which measures CIFAR-100 with CLIP, does not give its texts for the labels, so that none of these
prompts is known to be the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluators.backend import ChoiceRequest, Request, image_prompt
from evaluators.task import Asked, ItemFacts, Prompt, Read, by_id
from evaluators.tasks.labels.label_answers import CONTENT_FREE
from evaluators.tasks.labels.label_reading import LabelTask
from schemas.documents.record import Exchange
from schemas.documents.result import Normalisation
from schemas.items.image import ImageItem

_LABEL = "{label}"
_KINDS = ("", "blurry ", "black and white ", "low contrast ", "high contrast ", "bad ", "good ")
_OF_AUTHORS = tuple(
    f"{template}."
    for article in ("a", "the")
    for template in (
        *(f"a {kind}photo of {article} {_LABEL}" for kind in _KINDS),
        *(f"a photo of {article} {size} {_LABEL}" for size in ("small", "big")),
    )
)
"""The 18 templates that the authors of CLIP list for CIFAR-10 and CIFAR-100, in their order."""


def _prompt(name: str, templates: Sequence[str], description: str) -> Prompt:
    return Prompt(
        id=name,
        template=image_prompt("{image_sha256}"),
        options=("\n".join(templates),),
        orders=((0,),),
        scoring="option_logprob",
        requires="image_option_logprobs",
        description=description,
        chat=False,
        normalisation="sum",
    )


class ImageClassificationTask(LabelTask):
    """A task that reads a distribution over the labels of an image."""

    name = "image_classification"
    version = "1.0"
    item_shape = "image"
    support_splits = frozenset({"bias", "pool", "content_free"})
    prompts: Mapping[str, Prompt] = by_id(
        _prompt(
            "photo-v1", _OF_AUTHORS[:1], "The template 'a photo of a {label}.', which the authors of CLIP take first."
        ),
        _prompt("label-v1", (_LABEL,), "The label alone."),
        _prompt(
            f"photos{len(_OF_AUTHORS)}-v1",
            _OF_AUTHORS,
            f"Mean of the {len(_OF_AUTHORS)} templates of the authors of CLIP for CIFAR-10 and CIFAR-100.",
        ),
    )

    def requests(self, item: ImageItem, asked: Asked) -> Sequence[Request]:
        """Return the one request about an image."""
        (template,) = asked.prompt.options
        return [
            ChoiceRequest(
                prompt=image_prompt(item.image_sha256),
                # Not str.format: a label may hold braces, which are not slots of the template.
                options=tuple(template.replace(_LABEL, label) for label in item.labels),
                outcomes=item.labels,
                facts=self.baseline_facts(self.facts(item)),
                image=item.image.bytes,
            )
        ]

    def facts(self, item: ImageItem) -> ItemFacts:
        """Return the facts of an image."""
        groups = {} if item.category is None else {"superclass": item.category}
        if item.content_free is not None:
            # Contextual calibration uses them all, whether of one colour or of noise.
            groups |= {CONTENT_FREE: "placeholder", "image_kind": item.content_free}
        return ItemFacts(cluster=item.item_id, target=item.target, reference=item.target, groups=groups)

    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """Read the distribution over the labels, which only the normalisation ``sum`` gives."""
        if normalisation not in (None, "sum"):
            reason = f"similarities to an image have no tokens or bytes for {normalisation}; use the normalisation sum"
            return Read(status="failed", reason=reason)
        return super().read(exchanges, normalisation)

    def part_text(self, item: ImageItem) -> str:
        """Return the labels: the images of a part share nothing else."""
        return ", ".join(item.labels)


TASK = ImageClassificationTask()
