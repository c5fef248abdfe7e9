"""The judge as a reward function for training libraries, without importing any of them."""
