"""The pages of `docs/reference`, written from the code: every configuration key, and every command."""
