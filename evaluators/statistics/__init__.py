"""Arithmetic on arrays that metrics of several families need; it knows no task, file or model.

* *bootstrap*: intervals by resampling clusters.
* *option_scores*, *option_columns*: probabilities over options from stored log-probabilities, of one exchange or of
  all.
* *outcomes*, *class_accuracies*: certainty and prediction; how evenly a classifier is right over its classes.
* *record_tables*, *measure_table*: what the tables of all tasks extend: clusters, groups, slices, one row per item or
  part.
"""
