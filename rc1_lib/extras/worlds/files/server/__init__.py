"""The server of an exported dialogue world."""
