"""The dialogue world: tools and the rules that decide whether an answer is right."""
