"""Plots of the reward's evidence, of an evaluation and of a training, and the small charts of report pages."""
