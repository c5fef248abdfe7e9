"""Preflight: the gates in order, two rounds, and the ticket that opens training."""
