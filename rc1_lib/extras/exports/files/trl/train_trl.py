"""GRPO by TRL on this folder: `python train_trl.py --model_name_or_path NAME --output_dir OUT`, and TRL's own flags."""

from typing import Any

from datasets import load_dataset
from rc1_trl import FOLDER, SETTINGS, rc1_environment, rc1_reward
from trl import GRPOConfig, GRPOTrainer, ModelConfig, TrlParser, get_peft_config


def trainer_of(arguments: GRPOConfig, model: Any, **others: Any) -> GRPOTrainer:
    """Return the trainer; `others` are TRL's own arguments, such as `processing_class`."""
    arguments.max_tool_calling_iterations = SETTINGS.limits.turns - 1  # the last turn is the answer
    arguments.mask_truncated_completions = True  # RC1 pays nothing for a dialogue that was cut off
    rows = load_dataset("parquet", data_files=str(FOLDER / "rows.parquet"), split="train")
    return GRPOTrainer(
        model=model,
        args=arguments,
        train_dataset=rows,
        environment_factory=rc1_environment,
        reward_funcs=rc1_reward,
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
