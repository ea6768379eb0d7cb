"""The leaderboard: checks results, recomputes their metrics, ranks comparable results and writes the site.

*verify* turns results into entries whose numbers follow from stored answers, *ranking* makes tables of these, and
*pages* draws them and makes the site; *formats* exports results for others, and *publish* publishes them on the Hugging
Face Hub. *benchmark_pages* (``benchmarks/``) and *result_format* (``formats/``) are the interfaces of their plug-ins,
*benchmark_figures* the figures that the former can describe, *label_pages* the figures and counts that benchmarks of
labels share. *model_facts* reads ``models/``, a file for each model. ``papers/`` has a file for each paper that is
reproduced, and ``reported/`` one for each table quoted from a paper.

Importing the package does nothing; run ``python -m leaderboard``.
"""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
