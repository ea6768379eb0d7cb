"""Arithmetic on arrays that metrics of several families need; it knows no task, no file and no model.

From stored answers to a value with its interval::

    log-probabilities --option_scores--> probabilities --option_scores--> certainty, predicted outcome
                                              │
                         record_tables:       v                                   cluster  occupation │ value
                         one row per item or part, with its cluster and groups        0     nurse     │  1.0
                                              │                                       0     guard     │  0.5
                                              v  Statistics of a slice                1     nurse     │  nan
                         sums and numbers per cluster ──sum──> value
                                              └──*jackknife*: each cluster left out──> interval

    class_accuracies: how evenly a classifier is right over its classes (Gini index, COBias, Sen welfare)
    leaning: whether answers lean away from new ones of the same model, as rounding errors do not
    evenness: squares of accuracies and their products, without what chance adds to them
"""
