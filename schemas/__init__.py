"""The contract between the packages: the contents of every file on disk, and how they are read and written.

Each of these words has the same meaning everywhere in the code:

* *dataset*: built data with a version and a manifest. *Config* and *split* mean the same as in Hugging Face datasets.
* *item*: one row of a dataset. *request* and *response*: one call of a model.
* *record*: an item, the requests, the responses, and the answer that was read from them.
* *metric*: a number with its version, count, interval and ideal value. *result*: one model on one config of one
  dataset.
* *group*: a set of items that is compared with others, such as those of one pronoun, occupation or label. *cluster*:
  items that share a template or an occupation pair, which intervals leave out together.
* *signature*: everything that must be equal for two results to be comparable.

*documents* are the contents of files, *items* the rows of datasets, *lexicon* the words that both refer to; *files* and
*folders* read and write them, *outputs* is what commands print as JSON. *validate* checks
folders, and *json_schemas* writes the published JSON Schemas.

This package imports none of the other packages. Importing it does nothing: import the module that you need.
"""
