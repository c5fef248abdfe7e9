"""RC1: a gated pipeline that decides whether a post-training run has earned its compute.

Everything RC1 knows lives in this package, and nothing in it imports Prefect: `tasks/` and `flows/` call it.
"""

__version__ = "0.1.0"
