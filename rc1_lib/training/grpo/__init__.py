"""GRPO: takes of the same prompt are compared with each other, so that no value head is needed."""
