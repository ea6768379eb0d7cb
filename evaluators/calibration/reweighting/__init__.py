"""Reweights the class probabilities of any classifier, so that it is right about equally often in each class.

The way from probabilities to weights, where each step is a module::

    probabilities (n, n_classes) and right classes (n,)
      |  inputs      refuses what cannot be a probability, by row and column
      v
    Problem          rows + objective + the rules to choose from
      |  problem     objectives of how many rows of each class are right
      |  starts      weights without a search: a balanced logistic model, and steps to equal accuracies
      |  top_two     which class wins each row while the value of one class changes
      |  coordinate, anneal      searches from these starts, or from no correction
      v
    Candidate, ...
      |  fitting     of those that keep the floor under the mean accuracy, the one with the best objective
      v
    ClassRules       a weight or a membership function per class (rules)
      |  stored      a JSON file that ten lines of NumPy apply
      v
    corrected values (n, n_classes), of which the largest is the prediction
         summary     accuracy of each class, and how even they are, before and after

*gini_calibration* fits the weights of labels to the answers of a run, *command* does so for any file of probabilities,
and *estimator* is a pair of scikit-learn estimators. The rest computes with NumPy alone and knows no records or models;
the classifier is never asked again.

References:
    "Discovering the Hidden Role of Gini Index In Prompt-based Classification", arXiv:2603.15654; the rules are those of
    DCS, arXiv:2503.05157.
"""
