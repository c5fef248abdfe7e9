"""RC1: a gated pipeline that decides whether a post-training run is worth its compute.

All of RC1's logic is in this package, and nothing in it imports Prefect: `tasks/` and `flows/` call it.
"""

__version__ = "0.2.0"
