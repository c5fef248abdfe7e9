"""The configuration: its typed sections, the thresholds of the gates, how its files are read and explained."""
