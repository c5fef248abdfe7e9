"""Engines: the machinery that holds a model and changes it."""
