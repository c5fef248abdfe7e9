"""TRL's own trainer drives the dialogue world: it finds the tools, resets with a row's columns, asks for rewards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_schema, qwen3_template

from rc1_lib.environment.trl import DialogueEnvironment, environment_factory, reward_function
from rc1_lib.run import Run
from tests.environment.test_rewards import SETTINGS
from tests.environment.worlds import LIMITS

Tiny = Callable[..., Run]


@pytest.mark.filterwarnings("ignore")  # TRL calls its environments experimental
def test_a_step_of_grpo_in_the_dialogue_world(tiny: Tiny, pool: list[dict[str, Any]], tmp_path: Path) -> None:
    base = tiny().workspace.path("base")
    tokenizer = AutoTokenizer.from_pretrained(base)
    # TRL knows Qwen3's replies by the wording of its template; the tiny base writes them, but words its template anew.
    tokenizer.response_schema, tokenizer.response_template = qwen3_schema, qwen3_template
    rows = sorted(pool, key=lambda row: len(row["messages"][1]["content"]))[:2]
    make, pay = environment_factory(LIMITS), reward_function(SETTINGS)
    paid: list[float] = []
    played: list[str] = []

    def dialogue_reward(environments: Sequence[DialogueEnvironment], **columns: Any) -> list[float]:
        played.extend(str(environment._open().prompt[1]["content"]) for environment in environments)
        paid.extend(pay(environments=environments, **columns))
        return paid[-len(environments) :]

    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(base),
        processing_class=tokenizer,
        args=GRPOConfig(
            output_dir=str(tmp_path / "out"),
            max_steps=1,
            per_device_train_batch_size=2,
            num_generations=2,
            max_completion_length=24,
            max_tool_calling_iterations=2,
            use_cpu=True,
            bf16=False,
            report_to=[],
            logging_steps=1,
            save_strategy="no",
            seed=1,
        ),
        train_dataset=Dataset.from_list([{**row, "prompt": row["messages"][:2], "bucket": "hard"} for row in rows]),
        environment_factory=make,
        reward_funcs=dialogue_reward,
    )
    trainer.train()
    (prompt,) = set(played)
    assert len(played) == 2 and prompt in {str(row["messages"][1]["content"]) for row in rows}, "two about one row"
    assert {tool.__name__ for tool in trainer.tools} == {"wiki", "calc", "ask_user"}
    first = trainer.state.log_history[0]
    assert first["rewards/dialogue_reward/mean"] == pytest.approx(fmean(paid), abs=1e-6)
    assert all(reward < SETTINGS.success for reward in paid), "a model that has learned nothing solves nothing"
