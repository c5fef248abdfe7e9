"""RC1's environment and reward for TRL, with the limits and prices of this folder, and GRPO with both.

Start it with `python rc1_trl.py --model_name_or_path NAME --output_dir OUT`, and any flag of TRL's.
"""

from pathlib import Path
from typing import Any

from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer, ModelConfig, TrlParser, get_peft_config  # type: ignore[attr-defined]

from rc1_lib.environment.trl import environment_factory
from rc1_lib.extras.exports.reward import read_settings, reward_function

FOLDER = Path(__file__).resolve().parent
SETTINGS = read_settings(FOLDER)
rc1_environment = environment_factory(SETTINGS.limits)
rc1_reward = reward_function(SETTINGS)


def trainer_of(arguments: GRPOConfig, model: Any, **others: Any) -> GRPOTrainer:
    """Return TRL's trainer on these rows; `others` are its own arguments, such as `processing_class`."""
    arguments.max_tool_calling_iterations = SETTINGS.limits.turns - 1  # the last turn is the answer
    arguments.mask_truncated_completions = True  # RC1 pays nothing for a dialogue that was cut off
    return GRPOTrainer(
        model=model,
        args=arguments,
        train_dataset=load_dataset("parquet", data_files=str(FOLDER / "rows.parquet"), split="train"),
        environment_factory=rc1_environment,
        reward_funcs=rc1_reward,  # type: ignore[arg-type]
        **others,
    )


def main() -> None:
    """Train, and save the model."""
    arguments, model = TrlParser((GRPOConfig, ModelConfig)).parse_args_and_config()  # type: ignore[arg-type]
    trainer = trainer_of(arguments, model.model_name_or_path, peft_config=get_peft_config(model))
    trainer.train()
    trainer.save_model()


if __name__ == "__main__":
    main()
