"""Scoring dialogues: prompts, strict replies, providers, limits, the store of replies, the bill."""
