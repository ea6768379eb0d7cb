"""Pure functions of records: a ``MetricDefinition`` in one of these files is a metric."""
