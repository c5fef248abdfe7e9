"""Doubles for tests: they answer like the real thing, say in every answer that they are not, and are no judge."""
