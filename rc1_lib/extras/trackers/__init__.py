"""Metrics for Weights & Biases and MLflow, if installed: written to the workspace, and sent nowhere by default.

Both are offline unless their own variables say otherwise: `WANDB_MODE`, `MLFLOW_TRACKING_URI`. Only they read their
keys. Each module has a class `Run`, a tracker of `rc1_lib.training.callbacks.trackers`.
"""
