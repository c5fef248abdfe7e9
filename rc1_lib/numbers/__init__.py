"""Arithmetic that more than one room needs: shares, exact sums, intervals."""
