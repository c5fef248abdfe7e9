"""What leaves the workspace: the reproduction package, its signature, and what tells whether it is whole."""
