"""A narrowed model of the published base's shape, with random weights, learns and resumes in a real run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from bitsandbytes.nn import Linear4bit

from rc1_lib.run import Run, open_run
from rc1_lib.training.api import Setup
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.curriculum import Curriculum
from rc1_lib.training.engines.torch_ppo import TorchPPO, targets_of
from rc1_lib.training.ppo_run import advance, prepare
from rc1_lib.training.updates.forward import action_tokens, logprobs_of
from rc1_lib.training.usable import least_memory
from tests.forks import Forks
from tests.training.random_base import published_shape, random_run

SMALL = (
    "steps=2", "training.threads=1", "training.processes=1", "training.limits.turns=1", "batch_size=4",
    "rollout_len=8", "training.update.minibatches=2", "lr=1e-3", "training.checkpoints.every_steps=1",
)  # fmt: skip
LAST = "checkpoints/rc1/step_00002"


def small(workspace: Path) -> Run:
    """The published configuration, reduced until a step takes seconds."""
    return random_run(workspace, *SMALL, narrower=8, layers=2)


def main(workspace: str) -> None:
    """Train it in a fresh process."""
    run = small(Path(workspace))
    advance(prepare(run), run.config.seeds[0], 2, lambda _: None)


@pytest.fixture(scope="module")
def done(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two steps. Never write into its workspace."""
    root = tmp_path_factory.mktemp("published")
    process = forks.start(f"{__name__}.main", root)
    assert process.wait() == 0, process.read_output()[-2000:]
    return small(root)


@pytest.mark.long
def test_step_of_the_narrowed_four_bit_model_learns(done: Run) -> None:
    prepared = prepare(done)
    engine, strategy = TorchPPO(), prepared.strategy(5)
    engine.setup(prepared.setup(5))
    strategy.attach_engine(engine)
    packed = [layer for layer in engine.policy.modules() if isinstance(layer, Linear4bit)]
    assert len(packed) == 7 * 2 and all(layer.weight.quant_state.nested for layer in packed)
    assert engine.policy.causal.config.vocab_size == 151_936 and engine.policy.causal.is_gradient_checkpointing
    config = prepared.run.config
    batch = Curriculum(prepared.selection.train, config.priority_sampling, config.prompts, 5).next() | {"step": 0}
    strategy.on_batch(batch)
    collated = engine._collated(batch)
    rows = action_tokens(collated, range(len(collated)))
    targets = targets_of(engine.policy, collated, engine._settings, config.kl_coef)
    engine.train_step(batch)
    with torch.no_grad():
        moved = logprobs_of(engine.policy, collated, rows, engine.temperature) - rows.of(collated.old_logprobs)
    assert float((rows.of(targets.advantages) * moved).sum()) > 0, "rewarded tokens did not become more likely"


@pytest.mark.long
def test_resumed_narrowed_model_ends_with_the_same_bytes(done: Run, tmp_path: Path) -> None:
    shutil.copytree(done.workspace.root, tmp_path / "again", symlinks=True)
    shutil.rmtree(tmp_path / "again" / LAST)
    again, messages = small(tmp_path / "again"), list[str]()
    advance(prepare(again), again.config.seeds[0], 2, messages.append)
    assert messages == ["resumes from step_00001"]
    assert fingerprint(again.workspace.path(LAST)) == fingerprint(done.workspace.path(LAST))


def test_memory_estimate_counts_the_published_models_weights() -> None:
    config = open_run(profile="prod", workspace=Path("unused"), overrides=["training.precision=fp32"]).config
    layer = 2560 * (4096 + 2 * 1024) + 4096 * 2560 + 3 * 2560 * 9728
    parts = least_memory(Setup.of_run(config, config.base_model, 1), published_shape(), torch.device("cpu"))
    assert parts["weights"] == int(36 * layer * (0.5 + 1 / 64 + 4 / 16_384)) + 4 * (
        151_936 * 2560 + 36 * (2 * 2560 + 2 * 128) + 2560
    )
    adapter = 36 * 16 * (2 * (2560 + 4096) + 2 * (2560 + 1024) + 3 * (2560 + 9728))
    assert parts["adapter, gradients and optimizer"] == 16 * adapter
