"""Whom a pronoun refers to, in minimal pairs: option likelihoods, and metrics of equality over both sides of a pair."""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
