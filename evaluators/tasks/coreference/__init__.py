"""Whom a pronoun refers to, in minimal pairs that differ only in the gender of the pronoun, or in sets of families.

From item to metrics::

    "The guard thanked the nurse because she ..."     the same sentence with "he" is the other side of the pair
        │  coreference_task: one request per order of the options
        v
    A. guard  B. nurse │ A. nurse  B. guard           lettered_answers: the option that a text names, or a refusal
        │  ordered_options: probabilities, averaged over the orders, or votes of samples
        v
    nurse 0.7, guard 0.3
        │  CoreferenceTable: the referent first; without one, the reference occupation of the dataset
        v
    row of nurse: probabilities 0.7, 0.3; certainty; desirability; index of the pair
        ├── coreference_metrics: accuracy, gaps between stereotypes, equalized odds over occupations
        └── uncertainty_metrics: how similar the two sides of a pair are, also with certainty from sampled answers

The same sentence in all pronoun families is a set instead of a pair: family_coreference_task asks the same questions
and finds the sets, of which family_coreference_metrics measures how similar the families are.
"""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
