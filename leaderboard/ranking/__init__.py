"""The tables of comparable results, their ranks, and the results that have none.

*boards* groups results by signature into tables, with the columns of *table_columns*; *index_tables* combines the
results of a model on several configs. A result is ranked if nothing about it forbids that (*unranked*), if it beats
every baseline (*gates*) and no other result is of the same model or has the same answers (*duplicates*); *bounds*
widens it by what missing answers could change, and *rank_ranges* compares it with all others on the same items, of
which *revisions* lets one row of each model count.

*profiles* chooses the table that a benchmark shows first, and the values of its headline measures; *verdicts* says in
which of these each pair of models differs, and *placings* what a benchmark says of one model.

*reproduced* compares what papers printed with the results.

*score_ranks* ranks models by anybody's scores in the same way, which *scores* reads from a table.
"""
