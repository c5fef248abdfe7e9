"""Sampling by a vLLM server: its protocol, the adapter that it is given, and episodes that it plays."""
