"""What every update of a policy from its own episodes shares: the batch, the passes over it, the optimizer's steps."""
