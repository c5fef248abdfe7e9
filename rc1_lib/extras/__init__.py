"""What few use: each a package of its own with its dependency group and its tests; nothing of the core imports it.

| extra | what | group |
|---|---|---|
| `adapters` | the judge as a reward function of TRL and verl | |
| `base_builder` | builds the embedded model | `train` |
| `model_signing` | signs a release's weights by the OpenSSF's model signing | `model-signing` |
| `notebook` | functions and tables for notebooks | |
| `semantic` | leaks in other words, by a sentence-embedding model | `semantic` |
| `trackers` | metrics for Weights & Biases and MLflow | `wandb`, `mlflow` |
| `vllm` | sampling by a vLLM server | `train` |
| `worlds` | the world for OpenEnv and verifiers | `openenv`, `verifiers` |
"""
