"""Answer rules, and the check that asks one about known-right spellings and known-wrong answers."""
