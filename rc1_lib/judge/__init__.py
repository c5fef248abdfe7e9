"""Scoring dialogues. This version holds the local rule rubric; live providers are not part of it yet."""
