"""The source that decides the bytes of a checkpoint."""

from __future__ import annotations

CODE = (
    "rc1_lib/training", "rc1_lib/environment", "rc1_lib/reward", "rc1_lib/scoring", "rc1_lib/pool",
    "rc1_lib/artifacts.py", "rc1_lib/config.py", "rc1_lib/config_data.py", "rc1_lib/config_judge.py",
    "rc1_lib/config_training.py", "rc1_lib/config_values.py",
    "rc1_lib/records.py", "rc1_lib/text.py", "rc1_lib/task_specs", "rc1_lib/calculator.py",
)  # fmt: skip
"""Trained by other code, a checkpoint is another run's, and a warm start is made again."""
