"""Rows of the pool: how they are read, what they must look like, and the conventions of their dialogues."""
