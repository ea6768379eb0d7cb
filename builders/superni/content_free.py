"""Inputs without content, on which calibrations are fitted.

Placeholders are those of contextual calibration (Zhao et al. 2021, arXiv:2102.09690). Random words are those of
domain-context calibration (Fei et al. 2023, arXiv:2305.19148) as Reif and Schwartz use it: in each part of a task's
frame, as many words as the part has on average, drawn without replacement from the words of this part in all test
inputs. Labels are never looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from builders.superni.frame import find_frame

PLACEHOLDERS = ("N/A", "", "[MASK]")
N_RANDOM = 20


def random_texts(texts: Sequence[str], n: int, rng: np.random.Generator) -> Iterator[str]:
    """Yield inputs of random words in the frame of a task.

    Args:
        texts: Test inputs of the task, from which the words are drawn.
        n: Number of inputs.
        rng: Source of randomness.
    """
    frame = find_frame(texts)
    divided = [parts for text in texts if (parts := frame.parts(text)) is not None]
    bags = [[part.lower().split() for part in column] for column in zip(*divided, strict=True)]
    words = [[word for part in bag for word in part] for bag in bags]
    # A mean is never longer than the whole bag, so that there are always enough words.
    lengths = [math.ceil(len(bag) / len(divided)) for bag in words]
    for _ in range(n):
        yield frame.fill(
            [
                " ".join(bag[place] for place in rng.choice(len(bag), size=length, replace=False)) if length else ""
                for bag, length in zip(words, lengths, strict=True)
            ]
        )
