"""Difficulty: features of every row, the bucket that most of them vote for, and the balanced pool."""
