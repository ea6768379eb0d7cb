"""The generated pages of the site, and the files for download next to them.

::

    verified results, ranked boards
      |  what each page shows, as plain values (see below)
      v
    views  --publishing, templates-->  Markdown  --publishing (MkDocs)-->  site/_build
      |  files for download (see below)                                      ^
      └─────────────>  CSV, Parquet, LaTeX, SVG  ────────────────────────────┘

* Front page: *profile* (its table, who leads, and findings), and the page of a model (headline measures, results) with
  *badges*.
* Page of a table: *tables* (its columns, rows and sentences, for results and indices alike), *figures* (its charts, and
  those of all models of a benchmark, as its paper has them), drawn by *charts*.
* A model apart from the site: *model_summary* (its headline measures beside another model's), *summary_forms* (as text,
  data frame, Markdown and LaTeX), *model_cards* (what goes into a model card).
* Page of a result, and the lists of models and useless predictors: *model_views* (also how far a result can be trusted,
  and classes before and after corrections).
* Page of a paper: *papers* (its findings, tables and figures beside ours).
* Page of a dataset, and examples of answers: *dataset_views*.
* Pages of a suite: *suites* (also the files that are loaded when a part is chosen).
* Pages that compute in the browser: *compare* (models in pairs), *explorer* (all items and answers).
* Files: *table_files* (the tables that the site offers, with all their columns, for papers too, and BibTeX).
* Text: *markup* (numbers, intervals, escaped text, addresses).
"""
