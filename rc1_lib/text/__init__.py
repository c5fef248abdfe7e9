"""Text comparison for gates: words, n-grams, normalisation, and the search for repeated text."""
