"""The contract between the packages: what every file on disk holds, and how it is read and written.

Words, each used in exactly this sense everywhere:

* *dataset*: built, versioned, with a manifest; *config* and *split* as in Hugging Face.
* *item*: one row of a dataset.  *request* to *response*: one call of a model.
* *record*: an item, what was asked, what came back, what was read from it.
* *metric*: a number with its version, count, interval and ideal value.  *result*: one model on one config of one
  dataset.
* *group*: what is compared (pronoun, occupation, label).  *cluster*: items that share a template or an occupation pair,
  the unit of resampling.
* *signature*: what must be equal for two results to be comparable.

This package imports none of the others. It initialises nothing: import the module that you need.
"""
