"""The UI's table of training steps has exactly the figures that the engine measures."""

from __future__ import annotations

from rc1_lib.config.step_metrics import measured
from tasks.training_cards import steps_table


def step_of(engine: str, strategy: str) -> dict[str, float | None]:
    """A metrics line with every figure 0.5; figures that this engine does not measure are None, as in its log."""
    known = measured(engine, strategy)
    assert known is not None
    always = {"step": 1.0, "sec_per_step": 0.5, "mem_used_mb": 0.5, "kl": None, "ratio": None}
    return always | dict.fromkeys(known[0], 0.5)


def heads(table: str) -> list[str]:
    lines = table.splitlines()
    assert len({line.count("|") for line in lines}) == 1, table
    return [cell.strip() for cell in lines[0].strip("|").split("|")]


def test_supervised_step_has_accuracy_and_no_episode_columns() -> None:
    lines = [step_of("pure_pt_sft", "demonstrations")]
    assert heads(steps_table(lines)) == ["step", "loss", "accuracy", "seconds"]


def test_step_of_episodes_has_episode_columns() -> None:
    lines = [step_of("torch_ppo", "ppo") for _ in range(2)]
    assert heads(steps_table(lines)) == [
        "step", "loss", "KL", "reward", "success", "right answers", "asked, needed", "asked, not needed", "turns",
        "seconds",
    ]  # fmt: skip
