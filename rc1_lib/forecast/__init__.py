"""Estimates what a training will cost and can learn, by trying a little of it first."""
