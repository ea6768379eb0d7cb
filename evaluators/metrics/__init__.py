"""The metrics, as pure functions of records: each ``MetricDefinition`` in these files is a metric."""
