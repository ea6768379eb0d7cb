"""Annotation of minimal pairs by people: who is asked what, which votes count, and which pairs they accept.

The protocol is that of SynthBias (Wang et al. 2025, arXiv:2505.23996): three questions with the answers yes and no
about each sentence, four to ten annotators, and thresholds at 75 and 25 percent.
"""
