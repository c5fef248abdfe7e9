"""Prefect tasks: each reads files, calls the library once, and writes files or reports a verdict."""
