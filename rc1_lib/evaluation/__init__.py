"""The evaluation of a trained policy on held-out prompts, compared prompt by prompt with the initial policy."""
