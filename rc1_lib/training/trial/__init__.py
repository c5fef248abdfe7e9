"""Trying a shape out: a few steps of the configured training on random weights of the configured model's shape."""
