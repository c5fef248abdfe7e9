"""Dialogues labelled by people: reads label files, and asks for labels in the terminal."""
