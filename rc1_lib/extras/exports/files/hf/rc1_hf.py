"""RC1's reward with the limits and prices of this folder: `rc1_reward(prompts, completions, **columns)`."""

from pathlib import Path

from rc1_lib.extras.exports.reward import read_settings, reward_function

rc1_reward = reward_function(read_settings(Path(__file__).resolve().parent))
