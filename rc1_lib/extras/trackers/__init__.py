"""Metrics for Weights & Biases and MLflow, where they are installed: written below the workspace, sent nowhere.

Both are offline unless their own variables say otherwise: `WANDB_MODE`, `MLFLOW_TRACKING_URI`. Keys are theirs too and
are read by them alone. Each module has a `Run`, a tracker of `rc1_lib.training.callbacks.trackers`.
"""
