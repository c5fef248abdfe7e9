"""Shared by all algorithms: batches, forward passes, losses, metrics and optimizer steps of an update."""
