"""One file for each command of ``python -m leaderboard``, under the name of the command, and what several share."""
