"""The generated pages of the site, and the files for download next to them.

::

    verified results, ranked boards
      |  what each page shows, as plain values (see below)
      v
    views  --rendering, templates-->  Markdown  --publishing (MkDocs)-->  site/_build
      |  files for download (see below)                                      ^
      └─────────────>  CSV, Parquet, LaTeX, SVG  ────────────────────────────┘

* Front page: *profile* (its table, who leads, and findings).
* Page of a table: *tables* (its columns, rows and sentences, for results and indices alike), *pictures* (its charts).
* Figures of all models of a benchmark, as its paper has them: *figures*.
* Page of a model: *portraits* (headline measures and results), *badges*.
* A model apart from the site: *model_summary* (its headline measures beside another model's), *summary_forms* (as text,
  data frame, Markdown and LaTeX), *model_cards* (what goes into a model card).
* Page of a result: *model_views* (also how far it can be trusted, and classes before and after corrections) and
  *answers* (examples).
* Lists of the models, whose facts come from ``leaderboard/models``, and of the useless predictors: *model_list*.
* Page of a paper: *papers* (its findings, tables and figures beside ours).
* Page of a dataset: *dataset_views*.
* Pages of a suite: *suites* (also the files that are loaded when a part is chosen).
* Pages that compute in the browser: *compare* (models in pairs), *explorer* (all items and answers);
  *choice_keys* names results in their addresses.
* Files: *table_files* (the tables that the site offers, with all their columns), written by *exports* (any rows as CSV
  and Parquet) and *paper_files* (the same tables for papers and as Markdown, and BibTeX).
* Text: *markup* (numbers, intervals, escaped text), *addresses*.
"""
