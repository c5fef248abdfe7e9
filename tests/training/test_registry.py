"""Engines and strategies by name, also custom ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from importlib import import_module
from pathlib import Path

import polars as pl
import pytest

from rc1_lib.config.engines import ALIASES, ENGINES, PLAYED, STRATEGIES, EngineSpec, LearnsFrom, names_of
from rc1_lib.config.file import load_config
from rc1_lib.errors import ConfigError
from rc1_lib.evaluation.evaluate import BASE, TRAINED
from rc1_lib.evaluation.policies import evaluate_run
from rc1_lib.run import Run
from rc1_lib.training.api import Setup
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.checkpoint.save_load import load_checkpoint
from rc1_lib.training.ppo_run import advance, prepare
from rc1_lib.training.registry import make_engine, make_strategy
from rc1_lib.training.train_config import check_of_rows, load_train_config
from rc1_lib.training.train_local import train_small
from rc1_lib.workspace.artifacts import PROJECT_ROOT, Workspace
from tests.shares import share
from tests.training.tiny import write_base
from tests.training.tiny_world import RUNS

Tiny = Callable[..., Run]
LOCAL, SUPERVISED = PROJECT_ROOT / "configs/local.yaml", PROJECT_ROOT / "configs/train_local.yaml"
SHORT = ("steps=2", "gates.shared.resamples=20")


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, LearnsFrom], None]:
    """Adds an engine to the registry for one test."""

    def add(name: str, cls: str, learns_from: LearnsFrom) -> None:
        monkeypatch.setitem(ENGINES, name, EngineSpec(f"tests.training.registered:{cls}", learns_from))

    return add


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_every_registered_engine_can_be_created(name: str) -> None:
    module, _, cls = ENGINES[name].place.partition(":")
    assert type(make_engine(name)) is getattr(import_module(module), cls)


def test_strategies_can_be_created_and_aliases_name_engines() -> None:
    assert all(callable(make_strategy(name).on_batch) for name in STRATEGIES)
    assert set(ALIASES.values()) <= set(ENGINES) and not set(ALIASES) & set(ENGINES)
    assert {"torch_ppo", "trl_ppo"} <= {*names_of(ENGINES, LearnsFrom.EPISODES)} <= {*names_of(ENGINES, *PLAYED)}
    assert {"torch_grpo", "trl_dpo"} <= {*names_of(ENGINES, LearnsFrom.GROUPS)}
    assert "pure_pt_sft" in names_of(ENGINES, LearnsFrom.DEMONSTRATIONS)
    assert names_of(STRATEGIES, LearnsFrom.DEMONSTRATIONS) == ["demonstrations", "sft"]


@pytest.mark.parametrize("name", names_of(ENGINES, *PLAYED))
def test_engine_of_episodes_is_rejected_for_rows(name: str) -> None:
    fitting = ", ".join(names_of(ENGINES, LearnsFrom.DEMONSTRATIONS))
    with pytest.raises(ConfigError, match=rf"^engine\.name: {name} .* {fitting} .* sft, .*configs/local\.yaml$"):
        check_of_rows(load_train_config(SUPERVISED, [f"engine.name={name}"]))


def test_strategy_of_episodes_is_rejected_for_rows() -> None:
    with pytest.raises(ConfigError, match=r"strategy\.name: .*'ppo', .* pure_pt_sft .* sft$"):
        check_of_rows(load_train_config(SUPERVISED, ["strategy.name=ppo"]))


def test_unknown_engine_or_strategy_is_rejected_with_the_known_names(register: Callable[..., None]) -> None:
    register("counts", "TokenCounts", LearnsFrom.DEMONSTRATIONS)
    with pytest.raises(ConfigError, match=rf"engine\.name: .*'trl_kto', .* {', '.join(names_of(ENGINES))}$"):
        make_engine("trl_kto")
    with pytest.raises(ConfigError, match=rf"strategy\.name: .*'dpo', .* {', '.join(names_of(STRATEGIES))}$"):
        make_strategy("dpo")
    with pytest.raises(ConfigError, match=rf"engine\.name: .*'trl_kto', .* {', '.join(names_of(ENGINES))}$"):
        load_train_config(SUPERVISED, ["engine.name=trl_kto"])


def test_setup_is_frozen() -> None:
    setup = Setup.of_run(load_config(LOCAL, []), "base", 1)
    with pytest.raises(FrozenInstanceError):
        setup.seed = 2  # type: ignore[misc]


def test_custom_engine_trains_in_the_small_configuration(register: Callable[..., None], tmp_path: Path) -> None:
    register("counts", "TokenCounts", LearnsFrom.DEMONSTRATIONS)
    base = write_base(tmp_path / "base")
    short = (
        f"model.base={base}", "engine.name=counts", "run.device_pref=[cpu]", "run.mixed_precision=fp32",
        "run.max_steps=6", "run.save_steps=3", "run.eval_steps=3", "data.max_length=96", "engine.lr=2.0",
        "engine.max_grad_norm=null",
    )  # fmt: skip
    result = train_small(SUPERVISED, Workspace(tmp_path), None, short, lambda _: None)
    assert (result.step, result.checkpoint) == (6, tmp_path / "checkpoints/local/step_00006")
    losses = [json.loads(line)["loss"] for line in (tmp_path / "reports/metrics.jsonl").read_text().splitlines()]
    assert losses[-1] < losses[0]
    assert set(load_checkpoint(result.checkpoint).tensors) == {"unigrams"}


def test_custom_engine_trains_and_is_evaluated_in_a_run(register: Callable[..., None], tiny: Tiny) -> None:
    """It ignores the loaded adapter, so that its evaluation finds no change; torch_ppo would find one."""
    register("keeps", "KeepsItsStart", LearnsFrom.EPISODES)
    run = tiny("training.engine=keeps", *SHORT)
    before, after = evaluated_episodes(run)
    assert before == after
    state = load_checkpoint(run.workspace.path("checkpoints/rc1/step_00002"))
    assert state.values["config"]["training"]["engine"] == "keeps"


@pytest.mark.parametrize("engine", share(sorted({*RUNS, "trl_ppo"} - {"torch_ppo"}), "trl_dpo"))
def test_evaluation_plays_with_the_trained_adapter(tiny: Tiny, engine: str) -> None:
    """`trl_ppo` is `torch_ppo`. `trl_dpo` samples with the initial policy, but is evaluated with the trained one."""
    before, after = evaluated_episodes(tiny(*RUNS.get(engine, ()), f"training.engine={engine}", *SHORT))
    assert before != after


def test_another_engine_makes_another_run_but_an_alias_does_not(register: Callable[..., None], tiny: Tiny) -> None:
    register("keeps", "KeepsItsStart", LearnsFrom.EPISODES)
    facts = prepare(tiny()).facts(1)
    assert prepare(tiny("training.engine=trl_ppo")).facts(1) == facts
    assert prepare(tiny("training.engine=keeps")).facts(1) != facts


def test_engine_without_a_policy_is_not_evaluated(register: Callable[..., None], tiny: Tiny) -> None:
    register("mute", "Mute", LearnsFrom.EPISODES)
    run = tiny("training.engine=mute")
    with pytest.raises(ConfigError, match=r"training\.engine: .*'mute', .*engine\.PolicyEngine"):
        evaluate_run(prepare(run), {run.config.seeds[0]: ""})


def evaluated_episodes(run: Run) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Train, evaluate, and return the episodes of the initial and of the trained policy."""
    prepared, seed = prepare(run), run.config.seeds[0]
    finished = fingerprint(advance(prepared, seed, run.config.steps, lambda _: None))
    report = evaluate_run(prepared, {seed: finished}).report
    frame = pl.read_ndjson(run.workspace.path(report.replace(".json", ".episodes.jsonl")))
    return tuple(frame.filter(policy=name).drop("policy").rows(named=True) for name in (BASE, TRAINED))
