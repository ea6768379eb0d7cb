"""Reweights the class probabilities of any classifier, so that it is right about equally often in each class.

A correction is one weight (or membership function) per class, and the largest corrected value is the prediction::

            probabilities          weights              corrected values
            cat    dog    emu      cat   dog   emu      cat    dog    emu
    row 1   0.50   0.30   0.20                          0.20   0.30   0.18    dog instead of cat
    row 2   0.70   0.20   0.10  *  0.4   1.0   0.9  =   0.28   0.20   0.09    cat, as before

The way from rows with known classes to such weights::

    array_checks    what cannot be a probability or a class is refused, by row and column
    problem         rows + objective (how even the class accuracies are) + the rules (rules) that may be chosen
    solvers         candidates: a balanced logistic model, points on a path, searches; top_two ranks classes meanwhile
    fitting         of those that keep the floor under the mean accuracy, the candidate with the best objective
    rules           levels of weights and membership functions; applies the rule of each class, or keeps a row
    rules_file      a JSON file that ten lines of NumPy apply

*gini_calibration* fits the weights of labels to the answers of a run, *command* does so for any file of probabilities,
and *estimator* is a pair of scikit-learn estimators. The rest computes with NumPy alone and knows no records or models;
the classifier is never asked again.

References:
    "Discovering the Hidden Role of Gini Index In Prompt-based Classification", arXiv:2603.15654; the rules are those of
    DCS, arXiv:2503.05157.
"""
