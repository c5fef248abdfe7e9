"""Text as gates compare it: words, n-grams, normalisation, and the search for text that was told again."""
