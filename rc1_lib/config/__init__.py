"""The configuration: its typed sections, the thresholds of the gates, and reading its files."""
