"""Rows of the small local configuration: read, tokenised, shuffled and padded into batches."""
