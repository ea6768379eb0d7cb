"""General code that every package uses: errors, files, the terminal, plug-ins, memory, drawing.

* *errors*: mistakes of users, reported on one line each, and signals; any other exception is a bug with a traceback.
* *files, strict_json*: atomic writes, and reading without NaN or duplicate keys.
* *columns*: fields of many rows as arrays.
* *command_line, options, progress, plain_text*: the commands' options, and what a terminal shows.
* *plugins*: finds plug-ins by the names of their files. *kinds*: those of all packages. *memory*: caches what the same
  code computed from the same bytes.
* *hub*: downloads datasets of the Hugging Face Hub. *hub_publishing*: publishes files there, by one commit and a tag.
* *charts*: drawings for commands and pages, in which labels avoid each other.

Nothing here imports another package of ours, or knows datasets, records or metrics.
"""
