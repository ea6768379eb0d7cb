"""The generated pages of the site, and the files for download beside them.

::

    verified results, ranked boards
      |  sections, model_views, dataset_views, suites, ...     what each page shows, as plain values
      v
    views  --rendering, templates-->  Markdown  --publishing (MkDocs)-->  site/_build
      |  exports, downloads, latex                                           ^
      └─────────────>  CSV, JSON, LaTeX, SVG (plots, series)  ───────────────┘
"""
