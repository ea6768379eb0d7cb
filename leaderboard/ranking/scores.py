"""Reads anybody's scores of models on items from a table, long or wide.

::

    long: a row for each score      wide: a row for each model        wide: a column for each model
      model  item  score  repo        model  task-1  task-2             task    a     b
      a      t1    0.71   r1          a      0.71    0.80               task-1  0.71  0.64
      a      t2    0.80   r1          b      0.64    0.77               task-2  0.80  0.77

Scores are converted one by one, since pandas would silently take a column with one typing error for texts.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.plain_text import listed, printable
from schemas.documents.base import repeated

if TYPE_CHECKING:
    import pandas as pd

Layout: TypeAlias = Literal["rows", "columns"]
"""Where a wide table has its models."""

_MODELS = "model model_name model_id system submission agent method"
_ITEMS = (
    "item item_id instance_id instance question_id question example_id example doc_id sample_id problem task_name task "
    "dataset benchmark id"
)
_SCORES = "score main_score value resolved correct is_correct passed accuracy acc result"
"""Names by which columns are recognised, in this order; case, spaces and dashes do not count."""
_NO_ITEMS = frozenset(["mean", "average", "avg", "overall", "total", "rank", "mean_rank", "", "index", "unnamed:_0"])
"""Names of columns that sum up the others, and would be counted twice, or that number the rows."""
_MISSING = frozenset(["", "-", "\N{EN DASH}", "\N{EM DASH}", "na", "n/a", "nan", "none", "null", "<na>"])
_TRUTHS = {"true": "1", "false": "0"}
_LARGEST = 1e100
"""Largest size of a score; differences of larger ones could overflow."""
_MOST_NAMED = 12
_MOST_CLUSTERINGS = 2


class Scores(NamedTuple):
    """The scores of models on the same items."""

    models: tuple[str, ...]
    items: tuple[str, ...]
    values: FloatArray
    """Score of each model on each item, shape (n_models, n_items); nan for a missing score."""
    clusterings: dict[str, IntArray]
    """Index of each item's cluster, shape (n_items,), by the name of the column; empty if each item is a cluster."""
    ignored: tuple[str, ...] = ()
    """Items that were left out without being asked to, since by their names they are none."""

    def on(self, mask: BoolArray) -> Scores:
        """Return the scores on some of the items.

        Args:
            mask: True for each item to keep, shape (n_items,).
        """
        return self._replace(
            items=tuple(itertools.compress(self.items, mask)),
            values=self.values[:, mask],
            clusterings={name: clusters[mask] for name, clusters in self.clusterings.items()},
        )


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What the columns of a table hold; what is not named is recognised by common names."""

    model: str | None = None
    item: Sequence[str] = ()
    """Columns that name an item together."""
    score: str | None = None
    cluster: Sequence[str] = ()
    """Columns with the cluster of each item, at most two; two are crossed."""
    ignore: Sequence[str] = ()
    """Columns, items and models to leave out."""
    models_in: Layout | None = None
    """Layout of a wide table; None to recognise it."""


def scores_of(frame: pd.DataFrame, columns: Columns) -> Scores:
    """Find models, items, scores and clusters in a table.

    A table is long if it has columns of models, items and scores, and wide otherwise.

    Raises:
        ConfigError: a column that is named does not exist, or options contradict each other.
        DataError: the table is empty, names something twice, or holds a score that is no number.
    """
    if len(columns.cluster) > _MOST_CLUSTERINGS:
        raise ConfigError(
            f"{len(columns.cluster)} columns of clusters; name at most two, those in which items have most in common"
        )
    frame = _with_names(frame)
    wanted = [*filter(None, [columns.model, columns.score]), *columns.item, *columns.cluster]
    for name in wanted:
        if name not in frame.columns:
            raise ConfigError(f"no column '{name}'; have: {listed([*frame.columns], most=_MOST_NAMED)}")
    if frame.empty:
        raise DataError("there are no rows below the header; give a row for each score or each model")
    kept = frame[[name for name in frame.columns if name not in columns.ignore]]
    model = columns.model or _recognised(kept, _MODELS)
    items = [*columns.item] or [*filter(None, [_recognised(kept, _ITEMS, columns.cluster)])]
    score = columns.score or _recognised(kept, _SCORES)
    if model and items and score and columns.models_in is None:
        scores = _long(frame, model, items, score, columns.cluster)
    elif columns.score is not None or (model and score and columns.cluster and not items):
        missing = "models" if model is None else "items"
        option = "--model" if model is None else "--item"
        have = listed([*frame.columns], most=_MOST_NAMED)
        raise ConfigError(f"no column of {missing} is recognised; name it with {option} (have: {have})")
    else:
        naming = _recognised(frame, _MODELS) or frame.columns[0]
        if naming in columns.ignore and not (model or columns.item or kept.empty):
            raise ConfigError(
                f"--ignore '{naming}': is the column with the names of models or items; keep it, or name another with "
                "--model or --item"
            )
        scores = _wide(kept, columns, model)
    return _without(scores, columns, {*frame.columns})


def _with_names(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose columns have different names, all of them texts; an index with names becomes a column."""
    import pandas as pd

    if [*frame.index.names] != [None] or not pd.api.types.is_numeric_dtype(frame.index):
        frame = frame.reset_index(allow_duplicates=True)
    names = [str(name).strip() for name in frame.columns]
    for twice, n in repeated(names).items():
        raise DataError(f"column '{printable(twice)}' stands {n} times; keep one, or rename it")
    return frame.set_axis(names, axis=1)


def _normal(name: str) -> str:
    """Return a name in small letters without what stands in parentheses, with underscores.

    >>> _normal("Rank (Borda)"), _normal("Model Name")
    ('rank', 'model_name')
    """
    return re.sub(r"[\s-]+", "_", re.sub(r"\(.*?\)", "", name).strip().lower())


def _recognised(frame: pd.DataFrame, names: str, used: Sequence[str] = ()) -> str | None:
    by_name = {_normal(name): name for name in reversed([*frame.columns]) if name not in used}
    return next((by_name[name] for name in names.split() if name in by_name), None)


def _long(frame: pd.DataFrame, model: str, items: Sequence[str], score: str, clusters: Sequence[str]) -> Scores:
    parts = [_texts(frame, name) for name in items]
    n_models, models, model_of = _numbered(_texts(frame, model))
    n_items, item_names, item_of = _numbered([" / ".join(names) for names in zip(*parts, strict=True)])
    cells = model_of * n_items + item_of
    order = np.argsort(cells, kind="stable")
    again = order[1:][np.diff(cells[order]) == 0]
    if len(again):
        row = int(again.min())
        shown, of_model = printable(item_names[item_of[row]]), printable(models[model_of[row]])
        raise DataError(
            f"model '{of_model}' has several scores for item '{shown}'; average them first, or name with --item, "
            f"repeatable, the columns that tell them apart (have: {listed([*frame.columns], most=_MOST_NAMED)})"
        )
    values = np.full(n_models * n_items, np.nan)
    values[cells] = _numbers(
        frame, score, lambda row: f"model '{models[model_of[row]]}', item '{item_names[item_of[row]]}'"
    )
    clusterings = {name: _clusters_of_rows(frame, name, item_of, item_names) for name in clusters}
    return Scores(models, item_names, values.reshape(n_models, n_items), clusterings)


def _wide(frame: pd.DataFrame, columns: Columns, model: str | None) -> Scores:
    if frame.empty:
        raise ConfigError("--ignore leaves no column; keep those of models and scores")
    first = frame.columns[0]
    if len(columns.item) > 1:
        raise ConfigError("several columns of items need a column of scores; name it with --score")
    is_of_items = columns.model is None and _normal(first) in _ITEMS.split()
    models_in = columns.models_in or ("columns" if columns.item or is_of_items else "rows")
    if models_in == "rows":
        if columns.cluster:
            raise ConfigError(
                "clusters need a row for each item; give a long table, or one with a column for each model"
            )
        names = columns.model or model or first
        of_rows = _distinct(frame, names, "model")
        of_columns = [name for name in frame.columns if name != names and _normal(name) not in _NO_ITEMS]
    else:
        names = columns.item[0] if columns.item else first
        of_rows = _distinct(frame, names, "item")
        of_columns = [name for name in frame.columns if name != names and name not in columns.cluster]
    if not of_columns:
        raise DataError(
            f"no column of scores beside '{printable(names)}'; a long table needs columns such as model, item and score"
        )
    numbers = [_numbers(frame, name, lambda row: f"'{of_rows[row]}'") for name in of_columns]
    used = {*of_columns, names, *columns.cluster}
    ignored = tuple(name for name in frame.columns if name not in used)
    if models_in == "rows":
        return Scores(tuple(of_rows), tuple(of_columns), np.stack(numbers, axis=1), {}, ignored)
    rows = np.arange(len(frame))
    clusterings = {name: _clusters_of_rows(frame, name, rows, of_rows) for name in columns.cluster}
    return Scores(tuple(of_columns), tuple(of_rows), np.stack(numbers), clusterings)


def _without(scores: Scores, columns: Columns, known: set[str]) -> Scores:
    """Leave out models and items to ignore, items that are none by their names, and items without any score."""
    for name in columns.ignore:
        if name not in known and name not in scores.models and name not in scores.items:
            have = "; ".join(listed(names, most=_MOST_NAMED // 2) for names in (scores.items, scores.models))
            raise ConfigError(f"--ignore '{name}': is no column, item or model; have: {have}")
    is_none = np.array([_normal(item) in _NO_ITEMS and item not in columns.ignore for item in scores.items], dtype=bool)
    rows = [index for index, model in enumerate(scores.models) if model not in columns.ignore]
    left = scores._replace(models=tuple(scores.models[index] for index in rows), values=scores.values[rows])
    is_asked = np.array([item not in columns.ignore for item in scores.items], dtype=bool)
    others = itertools.compress(scores.items, is_none)
    kept = left.on(is_asked & ~is_none & ~np.isnan(left.values).all(axis=0))
    return kept._replace(ignored=(*scores.ignored, *others))


def _distinct(frame: pd.DataFrame, name: str, kind: str) -> list[str]:
    texts = _texts(frame, name)
    for twice, n in repeated(texts).items():
        raise DataError(
            f"{kind} '{printable(twice)}' has {n} rows in a wide table; keep one, or "
            "name the columns of a long table with --model, --item and --score"
        )
    return texts


def _texts(frame: pd.DataFrame, name: str) -> list[str]:
    """Return the name in each row of a column."""
    texts = []
    for row, value in enumerate(frame[name].tolist()):
        if isinstance(value, Mapping | list | tuple | np.ndarray):
            raise DataError(
                f"column '{name}' holds nested values; give one text or number per row, or name another column"
            )
        text = str(value).strip()
        if value is None or (isinstance(value, float) and math.isnan(value)) or text in ("", "<NA>"):
            raise DataError(f"row {row + 1} below the header has nothing in column '{name}'; complete or remove it")
        texts.append(text)
    return texts


def _numbered(texts: Sequence[str]) -> tuple[int, tuple[str, ...], IntArray]:
    """Return the number of different texts, the texts in the order of their first rows, and the index of each row's."""
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return len(numbers), tuple(numbers), np.array([numbers[text] for text in texts], dtype=np.int64)


def _clusters_of_rows(frame: pd.DataFrame, name: str, item_of: IntArray, items: Sequence[str]) -> IntArray:
    """Return the cluster of each item, shape (n_items,)."""
    _, clusters, cluster_of = _numbered(_texts(frame, name))
    of_items = np.zeros(len(items), dtype=np.int64)
    of_items[item_of] = cluster_of
    differs = of_items[item_of] != cluster_of
    if differs.any():
        row = int(differs.argmax())
        first, second = clusters[cluster_of[row]], clusters[of_items[item_of[row]]]
        raise DataError(
            f"item '{printable(items[item_of[row]])}' lies in the clusters '{printable(first)}' and "
            f"'{printable(second)}' of column '{name}'; give each item one cluster"
        )
    return of_items


def _numbers(frame: pd.DataFrame, name: str, where: Callable[[int], str]) -> FloatArray:
    """Return the number in each row of a column, nan where it is missing.

    Args:
        frame: The table.
        name: Name of the column.
        where: Function from the index of a row to words that say whose score it is.
    """
    numbers = np.empty(len(frame))
    for row, value in enumerate(frame[name].tolist()):
        try:
            number = _number(value)
        except (TypeError, ValueError, ArithmeticError):
            number = math.inf
        if abs(number) > _LARGEST:
            raise DataError(
                f"{printable(where(row))}: '{printable(str(value), most=40)}' in column '{name}' is no finite number; "
                "write a number, true, false or nothing, or leave the column out with --ignore"
            )
        numbers[row] = number
    return numbers


def _number(value: object) -> float:
    if isinstance(value, str):
        text = value.strip().lower()
        return math.nan if text in _MISSING else float(_TRUTHS.get(text, text))
    if value is None or str(value) == "<NA>":
        return math.nan
    if isinstance(value, Real | Decimal):
        return float(value)
    raise TypeError
