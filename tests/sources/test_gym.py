"""Questions that reasoning-gym invents."""

from __future__ import annotations

from pathlib import Path

import pytest

from rc1_lib.config.file import load_config
from rc1_lib.errors import SourceError
from rc1_lib.sources import load_questions
from rc1_lib.sources.gym import load_gym
from rc1_lib.task_specs import is_right
from rc1_lib.workspace.artifacts import PROJECT_ROOT, Workspace

gym = pytest.importorskip("reasoning_gym", reason="the extra rule-tests is not installed")
OVERRIDES = (
    "datasets={any_verdict: 0.5, any_number: 0.5}", "sources.use=hub", "pool.n=40", "shadow.n=10",
    "sources.hub={any_verdict: 'reasoning-gym:syllogism', any_number: 'reasoning-gym:leg_counting'}",
)  # fmt: skip


def test_a_mix_of_its_tasks_is_invented_again_from_the_same_seed(tmp_path: Path) -> None:
    config = load_config(PROJECT_ROOT / "configs/local.yaml", OVERRIDES)
    questions, _ = load_questions(config, Workspace(tmp_path))
    assert load_questions(config, Workspace(tmp_path))[0] == questions
    assert {task: len(found) >= 25 for task, found in questions.items()} == {"any_verdict": True, "any_number": True}
    made = gym.create_dataset("leg_counting", size=20, seed=config.pool.seed)
    for question in questions["any_number"][:20]:
        entry = made[int(question.id.rpartition("/")[2])]
        assert made.score_answer(question.answer, entry) == 1.0
        assert is_right("any_number", entry["answer"], question.answer)


def test_a_task_with_several_right_answers_is_refused() -> None:
    with pytest.raises(SourceError, match=r"sources\.hub\.any_text: found 'reasoning-gym:countdown'"):
        load_gym("any_text", "reasoning-gym:countdown", 5, 7)


def test_a_task_whose_questions_the_rule_would_pay_is_refused() -> None:
    with pytest.raises(SourceError, match=r"sources\.hub\.any_number: the rule of 'any_number' does not fit"):
        load_gym("any_number", "reasoning-gym:chain_sum", 60, 7)
