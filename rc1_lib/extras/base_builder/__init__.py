"""Builder of the bundled base: a tiny Qwen3 with its own tokenizer, trained on synthetic data by one command."""
