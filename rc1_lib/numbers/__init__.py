"""Arithmetic that several packages need: shares, exact sums, intervals."""
