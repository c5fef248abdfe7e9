"""The gates: pure functions from data and thresholds to a verdict. They read no file and write none."""
