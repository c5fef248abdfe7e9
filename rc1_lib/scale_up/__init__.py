"""Grow the pool size by size, with checks before and after each size, so that failures stay cheap."""
