"""Engines and strategies by name, also custom ones."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from rc1_lib.config.engines import ENGINES, STRATEGIES, EngineSpec, LearnsFrom, names_of
from rc1_lib.errors import ConfigError
from rc1_lib.evaluation.evaluate import BASE, TRAINED
from rc1_lib.evaluation.policies import evaluate_run
from rc1_lib.run import Run
from rc1_lib.training.api import make_engine, make_strategy
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.checkpoint.save_load import load_checkpoint
from rc1_lib.training.ppo_run import advance, prepare
from rc1_lib.training.train_config import check_of_rows, load_train_config
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.shares import share
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


@pytest.mark.parametrize("name", names_of(ENGINES, LearnsFrom.GROUPS))
def test_engine_of_groups_is_rejected_for_rows(name: str) -> None:
    fitting = ", ".join(names_of(ENGINES, LearnsFrom.DEMONSTRATIONS, LearnsFrom.EPISODES))
    with pytest.raises(ConfigError, match=rf"^engine\.name: {name} .* {fitting}, .*configs/local\.yaml$"):
        check_of_rows(load_train_config(SUPERVISED, [f"engine.name={name}"]))


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (("strategy.name=sft",), r"^strategy\.name: found 'sft', but trl_ppo learns from episodes; use ppo$"),
        (("engine.name=pure_pt_sft",), r"^strategy\.name: found 'ppo', .* demonstrations; use sft$"),
        (("model.lora.enable=false",), r"^model\.lora\.enable: "),
    ],
)
def test_engine_and_strategy_of_rows_have_to_fit(settings: tuple[str, ...], named: str) -> None:
    check_of_rows(load_train_config(SUPERVISED))
    with pytest.raises(ConfigError, match=named):
        check_of_rows(load_train_config(SUPERVISED, settings))


def test_unknown_engine_or_strategy_is_rejected_with_the_known_names(register: Callable[..., None]) -> None:
    register("keeps", "KeepsItsStart", LearnsFrom.EPISODES)
    with pytest.raises(ConfigError, match=rf"engine\.name: .*'trl_kto', .* {', '.join(names_of(ENGINES))}$"):
        make_engine("trl_kto")
    with pytest.raises(ConfigError, match=rf"strategy\.name: .*'dpo', .* {', '.join(names_of(STRATEGIES))}$"):
        make_strategy("dpo")
    with pytest.raises(ConfigError, match=rf"engine\.name: .*'trl_kto', .* {', '.join(names_of(ENGINES))}$"):
        load_train_config(SUPERVISED, ["engine.name=trl_kto"])


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


def evaluated_episodes(run: Run) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Train, evaluate, and return the episodes of the initial and of the trained policy."""
    prepared, seed = prepare(run), run.config.seeds[0]
    finished = fingerprint(advance(prepared, seed, run.config.steps, lambda _: None))
    report = evaluate_run(prepared, {seed: finished}).report
    frame = pl.read_ndjson(run.workspace.path(report.replace(".json", ".episodes.jsonl")))
    return tuple(frame.filter(policy=name).drop("policy").rows(named=True) for name in (BASE, TRAINED))
