"""PPO for episodes of several turns: pure functions of the numbers, and one updater that steps the policy."""
