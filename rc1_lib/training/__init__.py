"""Learning: rollouts in the dialogue world, policy optimisation, checkpoints and the modular trainer."""
