"""For training libraries: the judge as a reward function, without importing any of them, and the ticket as a lock."""
