"""Files on disk: the workspace, atomic writes, hashes, manifests, the lock."""
