"""Difficulty: features of every row, the bucket with most of their votes, and the balanced pool."""
