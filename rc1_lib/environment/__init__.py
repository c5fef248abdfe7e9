"""The environment: tools, simulated user, and the rules of an episode."""
