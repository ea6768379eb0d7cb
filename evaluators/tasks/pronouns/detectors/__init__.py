"""Detectors of pronouns, numbers and echoes in generated texts. Each has a version, which its metrics name."""
