"""Dialogues labelled by people: the sheet that they fill in, and their labels."""
