"""Strategies: what is learned from a batch."""
