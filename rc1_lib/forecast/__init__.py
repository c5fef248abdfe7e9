"""Estimate what a training will cost and whether it can learn, by trying a little of it first."""
