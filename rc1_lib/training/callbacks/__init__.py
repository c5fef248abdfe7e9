"""Callbacks of the training loop: logs, checkpoints, evaluation, early stopping, learning rate, caps."""
