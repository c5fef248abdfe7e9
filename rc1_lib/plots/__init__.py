"""Plots of the reward's evidence, of an evaluation and of a training."""
