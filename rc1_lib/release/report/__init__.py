"""The RC1 report: one page that tells how a run went, every number of it with the file that it came from."""
