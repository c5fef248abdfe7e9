"""What was made from what: descriptions of artifacts, fingerprints of code, signatures, pinned files."""
