"""What leaves the workspace: the reproduction package, its signature, and its verification."""
