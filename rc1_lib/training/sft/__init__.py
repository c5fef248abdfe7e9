"""Supervised training of a run's adapter: the lesson, and one iteration of it."""
