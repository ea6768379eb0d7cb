"""Sentences written by a language model: the requests, and the dataset built from its answers.

The evaluators query the model. This package writes the requests as a dataset and reads the answers from the records of
a run, so that it needs no client of its own.

*instructions* writes the requests for each cell of the design, *written_sentences* reads candidates from the answers,
and *generated* makes minimal pairs of those that pass the checks. *generate* holds the command that asks in rounds.
"""
