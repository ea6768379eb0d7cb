"""Arithmetic on arrays: resampling, probabilities of options, certainty."""
