"""Optional packages for few users, each with its own tests. The core imports none of them.

| extra | what | group |
|---|---|---|
| `adapters` | the judge as a reward function for TRL and verl, the ticket as a lock for trainers | |
| `rollouts` | rollouts of any trainer: read, checked, scored again | |
| `exports` | rows and reward for TRL, verl, OpenRLHF and datasets | |
| `trackers` | metrics for Weights & Biases and MLflow | `wandb`, `mlflow` |
"""
