"""Sampling with a vLLM server: its HTTP protocol, loading adapters, and playing episodes."""
