"""What every package stands on and none of them is about: errors, files, the terminal, plug-ins, memory, drawing.

* *errors*: what a user can cause, in one line each; everything else is a traceback.
* *files, strict_json, toml_files*: written beside their place and renamed; read without NaN and without double keys.
* *columns*: fields of many rows as arrays.
* *command_line, options, progress, plain_text*: what commands take, and what a terminal shows.
* *plugins*: finds parts by the names of their files. *memory*: keeps what was computed from the same bytes by the same
  code. *hub*: the connection to the Hugging Face Hub.
* *charts*: drawings in which no label hides another, for commands and pages.

Nothing here imports another package of ours or knows a dataset, a record or a metric.
"""
