"""Rollouts: batched multi-turn generation of a causal model against dialogue episodes."""
