"""The metrics of the task *classification*."""

from __future__ import annotations

from evaluators.tasks.labels.definitions import label_metrics

METRICS = label_metrics("classification")
