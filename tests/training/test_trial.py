"""Trials on random weights: the true shape narrowed, through the code that trains real weights, marked everywhere."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from bitsandbytes.nn import Linear4bit

from rc1_lib.errors import ConfigError
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.load import load_checkpoint
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.checkpoint.retention import keep_for_good
from rc1_lib.training.checkpoint.state import CheckpointError
from rc1_lib.training.curriculum import Curriculum
from rc1_lib.training.engines.torch_ppo import TorchPPO
from rc1_lib.training.handover.export import export_checkpoint
from rc1_lib.training.memory_estimate import estimate_memory
from rc1_lib.training.ppo.targets import targets_of
from rc1_lib.training.ppo_run import Prepared, advance, prepare
from rc1_lib.training.trial.shapes import shape_of
from rc1_lib.training.trial.trial import REPORT, prepare_trial
from rc1_lib.training.updates.own_tokens import own_tokens
from rc1_lib.training.updates.reading import logprobs_of
from rc1_lib.workspace.artifacts import read_json
from tests.forks import Forks
from tests.training.tried import published

QWEN = "Qwen/Qwen3-4B-Thinking-2507"
TRIAL = "checkpoints/trials/random-base"
LAST = f"{TRIAL}/checkpoints/rc1/step_00002"


@pytest.fixture(scope="module")
def done(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A trial of the published configuration. Never write into its workspace."""
    root = tmp_path_factory.mktemp("trial")
    process = forks.start("tests.training.tried.main", "prod", root)
    assert process.wait() == 0, process.told()[-2000:]
    return published(root)


@pytest.fixture(scope="module")
def prepared(done: Run) -> Prepared:
    """What that trial stood on."""
    return prepare_trial(done)


def test_every_trace_of_a_trial_says_what_it_is(done: Run) -> None:
    report, place = read_json(done.workspace.path(REPORT)), done.workspace
    assert report["trial"] == "random base" and "no policy" in report["says"]
    assert [step["trial/random_base"] for step in report["steps"]] == [1.0, 1.0]
    assert load_checkpoint(place.path(LAST)).values["trial"] == "random base"
    assert read_json(place.path(f"{TRIAL}/base/trial.json"))["trial"] == "random base"
    beside = {path.relative_to(place.root).as_posix() for path in place.root.rglob("*") if path.is_file()}
    assert {name for name in beside if not name.startswith(f"{TRIAL}/")} == {REPORT}


@pytest.mark.long
def test_a_step_of_the_narrowed_shape_in_four_bits_learns(prepared: Prepared) -> None:
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
    rows = own_tokens(collated, range(len(collated)))
    targets = targets_of(engine.policy, collated, engine._settings, config.kl_coef)
    engine.train_step(batch)
    with torch.no_grad():
        moved = logprobs_of(engine.policy, collated, rows, engine.temperature) - rows.of(collated.old_logprobs)
    assert float((rows.of(targets.advantages) * moved).sum()) > 0, "what paid is no likelier than it was"


@pytest.mark.long
def test_a_trial_goes_on_from_a_checkpoint_with_the_same_bytes(done: Run, tmp_path: Path) -> None:
    shutil.copytree(done.workspace.path(TRIAL), tmp_path / TRIAL, symlinks=True)
    shutil.rmtree(tmp_path / LAST)
    told: list[str] = []
    advance(prepare_trial(published(tmp_path)), done.config.seeds[0], 2, told.append)
    assert told == ["goes on from step_00001"]
    assert fingerprint(tmp_path / LAST) == fingerprint(done.workspace.path(LAST))


def test_nothing_of_a_trial_is_kept_exported_or_built_upon(done: Run, prepared: Prepared, tmp_path: Path) -> None:
    step = done.workspace.path(LAST)
    with pytest.raises(CheckpointError, match=r"trained on random weights \(rc1 train --random-base\)"):
        keep_for_good(step, step.parent)
    with pytest.raises(CheckpointError, match="trained on random weights"):
        export_checkpoint(prepared.run, step, tmp_path / "out", 1)
    assert not (tmp_path / "out").exists() and not (step.parent / "best").exists()
    with pytest.raises(ConfigError, match=r"holds random weights, .*name a real model"):
        prepare(prepared.run)
    real = replace(prepared, trial=None)
    assert real.facts(1) != prepared.facts(1) and real.facts(1)["trial"] is None


@pytest.mark.long
def test_what_a_step_takes_is_estimated_before_it_begins(done: Run, forks: Forks, tmp_path: Path) -> None:
    process = forks.start("tests.training.tried.main", "local", tmp_path)
    assert process.wait() == 0, process.told()[-2000:]
    for report in (done.workspace.path(REPORT), tmp_path / REPORT):
        last = read_json(report)["steps"][-1]
        assert 0.75 < last["mem_estimated_mb"] / last["mem_used_mb"] < 1.5, report


def test_a_shape_that_fits_no_machine_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    episodes = ("batch_size=100000000", "training.rollout.rows=100000000", "training.trial.narrower=1")
    with pytest.raises(ConfigError, match=r"does not fit .* weights 3\.20, .* keys and values \d+\.\d\d, .*logits"):
        prepare_trial(published(tmp_path, *episodes, "training.trial.layers=36"))
    assert not (tmp_path / TRIAL / "base").exists()


def test_the_published_shape_has_the_weights_that_its_model_has() -> None:
    run = published(Path("unused"))
    layer = 2560 * (4096 + 2 * 1024) + 4096 * 2560 + 3 * 2560 * 9728
    estimate = estimate_memory(run.config, shape_of(QWEN), torch.device("cpu"), 300)
    assert estimate.standing["weights"] == int(36 * layer * (0.5 + 1 / 64 + 4 / 16_384)) + 4 * (
        151_936 * 2560 + 36 * (2 * 2560 + 2 * 128) + 2560
    )
    assert estimate.standing["adapter"] == 4 * 36 * 16 * (2 * (2560 + 4096) + 2 * (2560 + 1024) + 3 * (2560 + 9728))


def test_a_shape_that_nobody_knows_or_that_cannot_be_divided_is_a_sentence() -> None:
    with pytest.raises(ConfigError, match=r"the shape of 'someone/other@abc' is not known"):
        shape_of("someone/other@abc")
    with pytest.raises(ConfigError, match=r"narrower: found 3, but hidden_size is 2560"):
        shape_of(QWEN, 3)
    with pytest.raises(ConfigError, match=r"layers: found 37, but the shape has 36"):
        shape_of(QWEN, 1, 37)
