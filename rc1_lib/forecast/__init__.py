"""What a training will take and can be expected to learn, found out by trying a little of it before."""
