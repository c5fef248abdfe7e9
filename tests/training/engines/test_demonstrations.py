"""Supervised training in a run: only assistant turns of the pool are trained on."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest

from rc1_lib.config.step_metrics import measured, unmeasured
from rc1_lib.run import Run
from rc1_lib.training.api import Setup, make_engine
from rc1_lib.training.curriculum import Curriculum
from rc1_lib.training.engines.pure_pt_sft import PurePtSFT
from rc1_lib.training.ppo_run import prepare
from rc1_lib.training.updates.batch import Demonstration, collate_demonstrations
from tests.training.test_episode_engines import same
from tests.training.tiny_world import SUPERVISED

Tiny = Callable[..., Run]
SFT = SUPERVISED["pure_pt_sft"]
FEW = "batch_size=4"
"""Few rows, for tests in which the size of a step does not matter."""
ONE_STEP = ("training.update.minibatches=1", "lr=0.001")


def engine_of(run: Run) -> PurePtSFT:
    engine = make_engine(run.config.training.engine)
    assert isinstance(engine, PurePtSFT)
    engine.setup(Setup.of_run(run.config, str(run.workspace.path(run.config.base_model)), 5))
    return engine


def demonstrated(engine: PurePtSFT, run: Run, step: int = 0) -> dict[str, Any]:
    """The batch of a step with its demonstrations and the strategy's metrics."""
    prepared = prepare(run)
    batches = Curriculum(prepared.selection.train, run.config.priority_sampling, run.config.prompts, 5)
    for _ in range(step + 1):
        batch = batches.next()
    strategy = prepared.strategy(5)
    strategy.attach_engine(engine)
    return batch | {"measured": strategy.on_batch(batch), "demonstrations": batch["demonstrations"]}


def test_step_reports_the_metrics_that_early_stop_accepts(tiny: Tiny) -> None:
    run = tiny(*SFT)
    engine = engine_of(run)
    batch = demonstrated(engine, run)
    metrics = engine.train_step(batch) | batch["measured"]
    known = measured("pure_pt_sft", "demonstrations")
    assert known is not None and metrics.keys() == known[0]
    assert all(math.isfinite(value) for value in metrics.values())
    assert metrics["lr"] == run.config.lr and metrics["update/steps"] == 2 and metrics["rows"] == 8
    assert 0 < metrics["mean_token_accuracy"] <= 1
    assert not unmeasured("eval/env/success", "pure_pt_sft", "demonstrations"), "an evaluation plays held-out rows"
    assert unmeasured("reward/success", "pure_pt_sft", "demonstrations")


def test_user_and_tool_tokens_are_input_but_not_labels() -> None:
    long = Demonstration("b", (1, 2, 3, 4, 5, 6, 7), (False, False, True, True, False, True, False))
    short = Demonstration("a", (1, 2, 3), (False, False, True))
    batch = collate_demonstrations([long, short], pad_id=9)
    assert batch.ids.tolist() == [[1, 2, 3, 9, 9, 9], [1, 2, 3, 4, 5, 6]], "sorted by id, cut after the last own token"
    own = batch.ids.where(batch.action_mask, 0)
    assert own.tolist() == [[0, 0, 3, 0, 0, 0], [0, 0, 3, 4, 0, 6]]


def test_loss_falls_and_a_restored_state_continues_bit_for_bit(tiny: Tiny) -> None:
    run = tiny(*SFT, FEW)
    one, other = engine_of(run), engine_of(run)
    batch = demonstrated(one, run)
    losses = [one.train_step(batch)["loss"] for _ in range(4)]
    assert losses[-1] < losses[0] - 0.1
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for engine in (one, other):
        engine.train_step(demonstrated(engine, run, 1))
    assert same(one.policy.adapter_state(), other.policy.adapter_state())


def test_micro_batches_and_shards_do_not_change_the_metrics(tiny: Tiny) -> None:
    found = []
    for settings in (("training.update.micro_tokens=100000",), ("training.update.micro_tokens=1", "training.shards=2")):
        run = tiny(*SFT, FEW, *ONE_STEP, *settings, "training.processes=1")
        engine = engine_of(run)
        found.append(engine.train_step(demonstrated(engine, run)))
    left, right = found
    assert left == pytest.approx(right, rel=1e-4, abs=1e-5) and {"loss", "grad_norm"} <= left.keys()
