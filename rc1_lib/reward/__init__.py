"""Terms of the reward, as pure functions."""
