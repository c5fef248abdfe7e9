"""Checks the environment before a run starts; it writes nothing and asks no judge."""
