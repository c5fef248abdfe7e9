"""Rollouts that any trainer wrote: `read` makes one frame of them, `audit` checks it, `rescore` scores it again."""
