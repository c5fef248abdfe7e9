"""Worthless policies, and playing them in the dialogue world: what a reward must not pay for."""
