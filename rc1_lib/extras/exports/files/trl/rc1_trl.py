"""RC1's environment and reward for TRL, with the limits and prices of this folder."""

from pathlib import Path

from rc1_lib.environment.trl import environment_factory
from rc1_lib.extras.exports.reward import read_settings, reward_function

FOLDER = Path(__file__).resolve().parent
SETTINGS = read_settings(FOLDER)
rc1_environment = environment_factory(SETTINGS.limits)
rc1_reward = reward_function(SETTINGS)
