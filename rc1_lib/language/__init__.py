"""What text says, in English and Chinese: numbers, and references that nothing resolves."""
