"""Grows the pool size by size, with checks before and after each, so that failures stay small."""
