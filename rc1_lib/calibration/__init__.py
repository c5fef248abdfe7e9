"""From judged rows to weights in force: shadow run, calibration, ablation, and the weights file."""
