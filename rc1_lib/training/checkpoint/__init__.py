"""Checkpoints that survive a kill: safetensors and JSON in atomically written folders, with a SHA-256 per file."""
