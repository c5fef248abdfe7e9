"""RC1's reward as verl's `compute_score`, with the limits and prices of this folder."""

from pathlib import Path

from rc1_lib.extras.exports.reward import read_settings, verl_score

compute_score = verl_score(read_settings(Path(__file__).resolve().parent))
