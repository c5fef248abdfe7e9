"""Adversarial policies and their dialogues in the environment, for which a reward must not pay."""
