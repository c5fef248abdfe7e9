"""The RC1 report: one page about how a run went, where every number names the file that it came from."""
