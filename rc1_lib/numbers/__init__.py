"""Arithmetic that several rooms need: the calculator, shares, exact sums, intervals."""
