"""Detectors of pronouns, refusals and numbers in generated texts. Each has a version, which its metrics name."""
