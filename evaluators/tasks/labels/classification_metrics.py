"""The metrics of the task *classification*."""

from __future__ import annotations

from evaluators.tasks.labels.metric_variants import label_metrics

METRICS = label_metrics("classification")
