"""Reworded leaks: rows that ask a shadow question with hardly a word in common."""
