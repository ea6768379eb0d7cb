"""Scorers that tests make themselves, and the scores that they give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from evaluators.tasks.pronouns.continuation_task import TASK
from evaluators.text_scores import TextScores, score_texts
from schemas.documents.record import Record
from schemas.documents.run_files import Scorer, ScorerKind


class MadeScorer:
    """Scores by a rule, counts what it was asked, and may break down."""

    def __init__(
        self,
        kind: ScorerKind,
        rule: Callable[[str], tuple[float, ...] | None],
        *,
        name: str = "made",
        fails_after: int | None = None,
    ) -> None:
        self.identity = Scorer(kind=kind, name=name, revision="1", settings={})
        self.asked: list[str] = []
        self._rule, self._fails_after = rule, fails_after

    def score(self, texts: Sequence[str]) -> Iterator[tuple[int, tuple[float, ...]]]:
        """By the rule; nothing for a text that it has no answer to."""
        for index, text in enumerate(texts):
            if self._fails_after is not None and len(self.asked) >= self._fails_after:
                raise KeyboardInterrupt
            self.asked.append(text)
            if (values := self._rule(text)) is not None:
                yield index, values


def scores_of(records: Sequence[Record], **rules: Callable[[str], tuple[float, ...] | None]) -> TextScores:
    """What rules by kind say of the texts of some records."""
    return score_texts(TASK.texts(records), [MadeScorer(kind, rule) for kind, rule in rules.items()])  # type: ignore[arg-type]
