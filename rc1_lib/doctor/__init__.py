"""What a run would stumble over, looked for before it starts; nothing is written, and nobody is asked for a score."""
