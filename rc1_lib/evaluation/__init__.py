"""The evaluation of a trained policy on held-out prompts, prompt by prompt against the policy it started from."""
