"""What happens besides the steps: logs, checkpoints, evaluation, early stop, gradient clipping, learning rates."""
