"""The embedded model: a tiny Qwen3 with a tokenizer of its own, built from embedded worlds by one command."""
