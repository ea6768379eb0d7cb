"""The tables of comparable results, their ranks, and the results that have none.

*boards* groups results by signature into tables and indices (*indices*), with the columns of *columns*. A result is
ranked if it beats every baseline (*gates*) and is nobody's double (*duplicates*); *bounds* widens it by what missing
answers could change, and *rank_ranges* compares it with all others on the same resamples.
"""
