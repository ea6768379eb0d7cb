"""Sentences written by a language model: what it is asked, and what becomes of its answers.

The model is asked by the evaluators. This package writes the requests as a dataset and reads the answers from the
records of a run, so that no client stands here.

*instructions* are what is asked for each cell of the design, *written_sentences* reads the candidates from the answers,
and *generated* makes minimal pairs of those that pass the checks. *generate_commands*
are ``requests`` and ``generate``.
"""
