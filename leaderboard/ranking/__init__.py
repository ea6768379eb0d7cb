"""The tables of comparable results, their ranks, and the results that have none.

A row stands for a result or for an index over several, and a table for what ranks them (*rows*). *boards* groups
results by signature into tables, chooses their columns, and combines the results of a model on several configs. A
result is ranked if no other is of the same model or has the same answers (*rows*), nothing about it forbids that, and
it beats every baseline. *rank_ranges* decides that, widens its value by what missing answers could change, and compares
each pair of models on the same items: its outcome is the one verdict that everything else reads. *frames* holds all
values, pairs and ranks of a board, and makes files of rows.

*profiles* chooses the table that a benchmark shows first, and the values of its headline measures, and says in words
what a benchmark says of one model.

*reproduced* compares what papers printed with the results, and says how long GPUs would take to ask their models.

*score_ranks* ranks models by anybody's scores in the same way, which *scores* reads from a table.
"""
