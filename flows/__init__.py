"""Prefect flows: what happens, in order."""
