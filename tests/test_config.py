"""Configuration files: every shipped one loads, and each fault is a sentence that names the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from rc1_lib.artifacts import PROJECT_ROOT
from rc1_lib.config_file import departures, dump_config, load_config
from rc1_lib.errors import ConfigError
from rc1_lib.run import open_run, published_config

LOCAL = PROJECT_ROOT / "configs/local.yaml"


@pytest.mark.parametrize("name", ["local.yaml", "ppo_scale.yaml"])
def test_every_shipped_configuration_loads(name: str) -> None:
    load_config(PROJECT_ROOT / "configs" / name)


def test_the_effective_configuration_loads_again_unchanged(tmp_path: Path) -> None:
    config = load_config(LOCAL, ["pool.n=600", "gates.mix.tolerance_pp=2.5"])
    copy = tmp_path / "effective.yaml"
    copy.write_text(dump_config(config), encoding="utf-8")
    assert load_config(copy) == config


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("pool.nn=5", "unknown key 'pool.nn'; did you mean 'n'?"),
        ("gates.diversity.min_distinct=0.5", "did you mean 'min_distinct2'?"),
        ("gatez.x=1", "there is no section 'gatez'; did you mean 'gates'?"),
        ("pool.n=many", "pool.n: found 'many'"),
        ("pool.n=0", "pool.n: found '0'"),
        ("pool.n", "expected KEY=VALUE"),
        ("pool.n=[1", "is not a YAML value"),
        ("datasets={hotpotqa: 0.5, strategyqa: 0.3, gsm8k: 0.3}", "sum to 1.1, expected 1"),
        ("datasets={hotpotqa: 0.5, trivia: 0.5}", "datasets.trivia"),
        ("difficulty.bounds={turns: {easy: 1, hard: 2}}", "difficulty.bounds must name exactly"),
        ("profile=test", "expected: Input should be 'local' or 'prod'"),
    ],
)
def test_each_fault_is_a_sentence_that_names_the_key(override: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(LOCAL, [override])
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "expected a mapping"),
        ("- a\n- b\n", "expected a mapping"),
        ("a: [1\n", "is not valid YAML"),
        ("profile: local\nprofile: prod\n", "line 2 is not valid YAML: the key 'profile' stands twice"),
        ("profile: local\n", "the key 'simulate' is missing"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load_config(path)
    assert sentence in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_missing_or_binary_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such configuration file"):
        load_config(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read as UTF-8"):
        load_config(tmp_path / "binary.yaml")


def test_thresholds_that_differ_from_the_published_ones_are_listed() -> None:
    loosened = load_config(LOCAL, ["gates.diversity.min_distinct2=0.1"])
    assert {"key": "gates.diversity.min_distinct2", "value": 0.1, "published": 0.6} in departures(
        loosened, published_config()
    )
    assert departures(published_config(), published_config()) == []


def test_the_environment_chooses_profile_model_and_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUN_MODE", "prod")
    monkeypatch.setenv("SCORER_PROVIDER", "openai")
    monkeypatch.setenv("BASE_MODEL", "some/model")
    config = open_run().config
    assert (config.profile, config.judge.provider, config.base_model) == ("prod", "openai", "some/model")


def test_a_file_of_another_profile_is_refused() -> None:
    with pytest.raises(ConfigError, match="is of profile 'local', but 'prod' was asked for"):
        open_run(profile="prod", config=LOCAL)
    with pytest.raises(ConfigError, match="expected one of local, prod"):
        open_run(profile="test")
