"""Dialogues that people have labelled: reading them from anybody's file, and asking for them in the terminal."""
