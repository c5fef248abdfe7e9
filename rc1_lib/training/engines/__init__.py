"""Engines: each holds a model and trains it with one algorithm."""
