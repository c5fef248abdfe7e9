"""Leaks in other words: shadow questions that a row asks with hardly a word in common."""
