"""Checkpoints that a kill cannot tear: safetensors and JSON in folders that appear whole, a SHA-256 for every file."""
