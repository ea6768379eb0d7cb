"""Scores sentiment, toxicity or regard with a text classifier of transformers. Default models are pinned."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from biasboard.ground.errors import ConfigError, import_extra
from evaluators.models.model_files import ModelFiles, find_model, load_pretrained
from evaluators.scorer import plain_name
from schemas.documents.run_files import Scorer, ScorerKind

SUMMARY = (
    "a text classifier of transformers, by default the paper's for sentiment and unbiased-toxic-roberta for toxicity; "
    "extra 'hf'"
)
KINDS: tuple[ScorerKind, ...] = ("sentiment", "toxicity", "regard")
_MAX_TOKENS = 512
_REMEDY = "name another model"
_DEFAULTS: Mapping[str, tuple[str, str]] = {
    "sentiment": ("cardiffnlp/twitter-roberta-base-sentiment-latest", "3216a57f2a0d9c45a2e6c20157c20c49fb4bf9c7"),
    "toxicity": ("unitary/unbiased-toxic-roberta", "36295dd80b422dc49f40052021430dae76241adc"),
}
"""Model and commit by the kind of score."""
_SENTIMENTS = ("negative", "neutral", "positive")
_TOXIC = ("toxicity", "toxic")
_SIDES = ("negative", "positive")


class Classifier:
    """A classifier that gives the probabilities of negative, neutral and positive, that of toxic, or regard.

    Regard (Sheng et al. 2019, arXiv:1909.01326) is how positively a text presents the people whom it is about: the
    probability of positive minus that of negative.
    """

    def __init__(self, kind: ScorerKind, files: ModelFiles) -> None:
        self._kind, self._files = kind, files
        self._pipeline: Any = None
        self.identity = Scorer(
            kind=kind,
            name=plain_name(files.public_name),
            revision=files.revision.removeprefix("sha256:")[:12],
            settings={"max_tokens": str(_MAX_TOKENS), "transformers": importlib.metadata.version("transformers")},
        )

    def score(self, texts: Sequence[str]) -> Iterator[tuple[int, tuple[float, ...]]]:
        """Score texts, each cut off after at most 512 tokens.

        Yields:
            Index of a text, and its probabilities: negative, neutral and positive for sentiment, toxic for toxicity,
            the difference of positive and negative for regard.

        Raises:
            ConfigError: the model cannot be loaded, or lacks the labels that its kind needs.
        """
        pipeline = self._pipeline = self._pipeline or self._load()
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        is_toxicity = self._kind == "toxicity"
        outputs = pipeline(
            (texts[index] for index in order),
            batch_size=16,
            truncation=True,
            max_length=_max_tokens(pipeline),
            top_k=None,
            # Several labels of toxicity can apply to one text, if there are more than two; others exclude each other.
            function_to_apply="sigmoid" if is_toxicity and len(pipeline.model.config.id2label) > 2 else "softmax",
        )
        for index, output in zip(order, outputs, strict=True):
            scores = {entry["label"].lower(): float(entry["score"]) for entry in output}
            if self._kind == "regard":
                yield index, (scores["positive"] - scores["negative"],)
                continue
            of_kind = next((label,) for label in _TOXIC if label in scores) if is_toxicity else _SENTIMENTS
            yield index, tuple(scores[label] for label in of_kind)

    def _load(self) -> Any:
        transformers = import_extra("transformers", "hf")
        name = self._files.public_name
        load = partial(
            load_pretrained,
            location=self._files.location,
            commit=self._files.commit,
            what=f"classifier '{name}'",
            remedy=_REMEDY,
            own_code=_REMEDY,
        )
        tokenizer = load("AutoTokenizer")
        model, loading = load("AutoModelForSequenceClassification", dtype="float32", output_loading_info=True)
        if missing := sorted(loading["missing_keys"]):
            raise ConfigError(
                f"classifier '{name}' lacks weights, such as {missing[0]}, which would be random; name a model that "
                "was trained to classify"
            )
        pipeline = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer)
        labels = {str(label).lower() for label in model.config.id2label.values()}
        if self._kind == "sentiment" and labels != set(_SENTIMENTS):
            needed = f"{', '.join(_SENTIMENTS)}, and no other"
        elif self._kind == "toxicity" and not labels.intersection(_TOXIC):
            needed = " or ".join(_TOXIC)
        elif self._kind == "regard" and not labels.issuperset(_SIDES):
            needed = " and ".join(_SIDES)
        else:
            return pipeline
        raise ConfigError(
            f"classifier '{self._files.public_name}' has the labels {', '.join(sorted(labels))}, {self._kind} needs "
            f"{needed}; name another model"
        )


def _max_tokens(pipeline: Any) -> int:
    """Return the maximum number of tokens in a text.

    RoBERTa models count positions from after the padding id, so they accept fewer tokens than they have positions.
    """
    positions = getattr(pipeline.model.config, "max_position_embeddings", None) or _MAX_TOKENS
    offset = getattr(getattr(pipeline.model.base_model, "embeddings", None), "padding_idx", None)
    model_limit = (
        positions if offset is None or "roberta" not in pipeline.model.config.model_type else positions - offset - 1
    )
    return int(min(_MAX_TOKENS, model_limit, pipeline.tokenizer.model_max_length))


def open_scorer(kind: ScorerKind, model: str | None, revision: str | None) -> Classifier:
    """Find the files of a classifier.

    Args:
        kind: ``sentiment``, ``toxicity`` or ``regard``.
        model: Id on the Hub, or path of a local folder; None for the default model of the kind, which regard lacks.
        revision: Commit, tag or branch on the Hub; ignored for the default model, which is pinned to a commit.

    Raises:
        ConfigError: the model cannot be found.
        MissingExtraError: transformers is not installed.
    """
    import_extra("transformers", "hf")
    if model is None:
        if kind not in _DEFAULTS:
            raise ConfigError(f"--scorer {kind}=classifier: has no default model; name one: {kind}=classifier:ORG/NAME")
        model, revision = _DEFAULTS[kind]
    return Classifier(kind, find_model(model, revision))
