"""Facts about language models that several backends and commands need; nothing here asks a model about an item.

* *model_files*, *chosen_adapters*, *pretrained*: which files a model is, their exact version, and loading them safely.
* *tokenizer*, *chat_template* (with *chat_probe*), *harness_borders*: the ids of a prompt and where its options
  begin; *option_trie*: the fewest questions about options, for engines and endpoints.
* *request_blocks*, *process_limits*: how many requests are asked together, and on how many cores.
* *parity*: whether a backend gives the scores of plain transformers.
"""
