"""What leaves the workspace: the reproduction package, its signature, and the check that it is whole."""
