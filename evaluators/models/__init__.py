"""Facts about language models that several backends and commands need; nothing here asks a model about an item.

* *model_files*: finds the files of a model and of its adapters and their exact version, and loads them safely, on as
  many cores as this process may use.
* *tokenizer*, *chat_template* (with *chat_template_process*), *harness_borders*: the token ids of a prompt,
  which spell it, and where its options begin; *option_trie*: the fewest questions about options, for engines and
  endpoints.
* *outline*: what planning needs of a model, without its weights.
* *parity*: compares a backend with the scores of plain transformers.
"""
