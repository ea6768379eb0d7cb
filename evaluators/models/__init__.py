"""Facts about language models that several backends need: files, tokenizers, prices, batches, parity."""
