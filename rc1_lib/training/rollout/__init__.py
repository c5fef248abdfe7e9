"""Rollouts: batched multi-turn generation in episodes of the environment."""
