"""The RC1 report: one page about a run, on which every number names the file that it comes from."""
