"""What TRL's engines share: non-finite gradients, dropout and the size of passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rc1_lib.errors import ConfigError
from rc1_lib.run import Run
from rc1_lib.training.diverged import DivergedError
from rc1_lib.training.engines.trl_engine import rows_of_a_pass
from tests.shares import share
from tests.training.test_episode_engines import engine_of, played, same
from tests.training.tiny_world import ENGINES

Tiny = Callable[..., Run]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", share(["trl_dpo", "trl_grpo"], "trl_grpo"))
def test_non_finite_gradient_is_rejected_before_the_step(tiny: Tiny, name: str, bad: float) -> None:
    run = tiny(*ENGINES[name])
    engine = engine_of(run)
    batch = played(engine, run)
    batch["scores"] = [0.1 * place for place in range(len(batch["scores"]))]
    before = engine.policy.adapter_state()

    def spoil(gradient: Any) -> Any:
        return gradient * bad

    handle = engine.policy.adapter_parameters()[-1].register_hook(spoil)
    with pytest.raises(DivergedError, match=r"\bnorm\b.* (nan|inf), "):
        engine.train_step(batch)
    handle.remove()
    assert same(engine.policy.adapter_state(), before)


def test_attention_dropout_is_rejected_as_trl_uses_training_mode(tiny: Tiny) -> None:
    run = tiny(*ENGINES["trl_dpo"])
    config = run.workspace.path("base/config.json")
    config.write_text(config.read_text().replace('"attention_dropout": 0.0', '"attention_dropout": 0.1'))
    with pytest.raises(ConfigError, match=r"training\.engine: .*\(attention_dropout 0\.1 "):
        engine_of(run)


def test_rows_of_a_pass_divide_the_minibatch_and_fit_the_token_limit() -> None:
    assert [rows_of_a_pass(12, most) for most in (0, 1, 5, 100)] == [1, 1, 4, 12]
