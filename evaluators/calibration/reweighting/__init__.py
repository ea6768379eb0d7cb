"""Reweights the class probabilities of any classifier, so that it is right about equally often in each class.

A correction is one weight (or membership function) per class, and the largest corrected value is the prediction::

            probabilities          weights              corrected values
            cat    dog    emu      cat   dog   emu      cat    dog    emu
    row 1   0.50   0.30   0.20                          0.20   0.30   0.18    dog instead of cat
    row 2   0.70   0.20   0.10  *  0.4   1.0   0.9  =   0.28   0.20   0.09    cat, as before

From rows with known classes to such weights::

    accuracy_report accuracies by class, how even they are, and what a correction costs
    problem         rows + objective (how even the class accuracies are), with a floor under their mean
    solvers         candidates: a balanced logistic model, searches, and what lies between; top_two speeds these up
    fitting         the presets; takes the candidate with the best objective that keeps the floor
    rules           weights and membership functions, their application to probabilities, and their JSON file

A user chooses a preset: ``default``, ``balanced`` as a reference, or ``paper``. *gini_calibration* fits weights of
labels to the answers of a run, with two solvers of its own, whose values stored results hold. *command* does so for any
file of probabilities, and *estimator* is a scikit-learn estimator. The other modules use NumPy alone and know no
records or models; the classifier is never asked again.

References:
    "Discovering the Hidden Role of Gini Index In Prompt-based Classification", arXiv:2603.15654; the rules are those of
    DCS, arXiv:2503.05157.
"""
