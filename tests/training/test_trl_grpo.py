"""TRL's trainer drives the environment: it finds the tools, resets with a row's columns and requests rewards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_schema, qwen3_template

from rc1_lib.environment.trl import DialogueEnvironment, environment_factory
from rc1_lib.extras.exports.reward import RewardFunction, reward_function
from rc1_lib.extras.worlds.spec import WorldSpec
from rc1_lib.run import Run
from tests.environment.test_rewards import SETTINGS
from tests.environment.worlds import LIMITS

Tiny = Callable[..., Run]


def trainer_of(base: Path, rows: list[dict[str, Any]], reward: RewardFunction, **arguments: Any) -> GRPOTrainer:
    """TRL's trainer with a new adapter, in the environment of these rows."""
    tokenizer = AutoTokenizer.from_pretrained(base)
    # TRL recognizes Qwen3's reply format by its template's text, which the tiny base's template does not share.
    tokenizer.response_schema, tokenizer.response_template = qwen3_schema, qwen3_template
    return GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(base),
        processing_class=tokenizer,
        args=GRPOConfig(
            max_tool_calling_iterations=2,
            use_cpu=True,
            bf16=False,
            report_to=[],
            logging_steps=1,
            seed=1,
            **arguments,
        ),
        train_dataset=Dataset.from_list([{**row, "prompt": row["messages"][:2], "bucket": "hard"} for row in rows]),
        environment_factory=environment_factory(LIMITS),
        reward_funcs=reward,
        peft_config=LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"]),
    )


def shortest(pool: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    return sorted(pool, key=lambda row: len(row["messages"][1]["content"]))[:count]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # TRL calls its environments experimental
def test_trl_takes_a_grpo_step_in_the_environment(tiny: Tiny, pool: list[dict[str, Any]], tmp_path: Path) -> None:
    rows, pay = shortest(pool, 2), reward_function(WorldSpec("", LIMITS, SETTINGS))
    paid: list[float] = []
    played: list[str] = []

    def dialogue_reward(environments: Sequence[DialogueEnvironment], **columns: Any) -> list[float]:
        played.extend(str(environment._open().prompt[1]["content"]) for environment in environments)
        paid.extend(pay(environments=environments, **columns))
        return paid[-len(environments) :]

    trainer = trainer_of(
        tiny().workspace.path("base"), rows, dialogue_reward, output_dir=str(tmp_path / "out"), max_steps=1,
        per_device_train_batch_size=2, num_generations=2, max_completion_length=24, save_strategy="no",
    )  # fmt: skip
    trainer.train()
    (prompt,) = set(played)
    assert len(played) == 2 and prompt in {str(row["messages"][1]["content"]) for row in rows}, "one row, twice"
    assert {tool.__name__ for tool in trainer.tools} == {"wiki", "calc", "ask_user"}
    first = trainer.state.log_history[0]
    assert first["rewards/dialogue_reward/mean"] == pytest.approx(fmean(paid), abs=1e-6)
    assert all(reward < SETTINGS.success for reward in paid), "an untrained model solved a row"
