"""Configuration files: every shipped one loads, and the error of each fault names the key."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import rc1_lib.run
from rc1_lib.config.engines import ENGINES, LearnsFrom, names_of
from rc1_lib.config.file import (
    _FREE,
    EXTENDS,
    decisive,
    departures,
    dump_config,
    flatten,
    load_config,
    merged,
    read_layers,
)
from rc1_lib.errors import ConfigError
from rc1_lib.judge.budget import check_evaluation_calls
from rc1_lib.preflight.preconditions import check_can_calibrate, check_can_train, check_waiver_reasons
from rc1_lib.run import PUBLISHED, open_run, published_config
from rc1_lib.workspace.artifacts import PROJECT_ROOT

LOCAL = PROJECT_ROOT / "configs/local.yaml"
OTHER_KINDS = ("train_local.yaml",)
SHIPPED = sorted(path.name for path in LOCAL.parent.glob("*.yaml") if path.name not in OTHER_KINDS)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_configuration_loads(name: str) -> None:
    load_config(LOCAL.with_name(name))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_configuration_can_be_trained(name: str, tmp_path: Path) -> None:
    """Whatever judge is set: a budget must be enough for the evaluation of every seed."""
    run = open_run(profile=None, config=LOCAL.with_name(name), workspace=tmp_path)
    check_can_train(run)
    check_waiver_reasons(run)
    check_can_calibrate(run)
    check_evaluation_calls(run.config, len(run.config.seeds))
    live = {"provider": "gemini", "model": "gemini-x"}
    judge = run.config.judge.model_copy(update=live)
    check_evaluation_calls(run.config.model_copy(update={"judge": judge}), 1)


def test_published_configuration_has_every_key() -> None:
    (published,) = read_layers(PROJECT_ROOT / PUBLISHED)
    assert flatten(published.tree).keys() == flatten(published_config().model_dump(mode="json")).keys()


@pytest.mark.parametrize("name", [name for name in SHIPPED if name != Path(PUBLISHED).name])
def test_other_configurations_have_only_keys_that_differ(name: str) -> None:
    """A duplicated value would be changed in one place and forgotten in the other."""
    own, *others = read_layers(LOCAL.with_name(name))
    assert others[-1].path == PROJECT_ROOT / PUBLISHED
    below = flatten(merged(others))
    given = {key: value for key, value in flatten(own.tree).items() if key != EXTENDS}
    assert {key: value for key, value in given.items() if key in below and below[key] == value} == {}


def test_effective_configuration_loads_unchanged(tmp_path: Path) -> None:
    config = load_config(LOCAL, ["pool.n=600", "gates.mix.tolerance_pp=2.5"])
    copy = tmp_path / "effective.yaml"
    copy.write_text(dump_config(config), encoding="utf-8")
    assert load_config(copy) == config


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("pool.nn=5", "unknown key 'pool.nn'; did you mean 'n'?"),
        (
            "scale_up.sizes.0=1",
            "'sizes' is a value, not a section with keys; set all of it: scale_up.sizes=...",
        ),
        ("gatez.x=1", "unknown section 'gatez'; did you mean 'gates'?"),
        ("pool.n=many", "pool.n: found 'many'"),
        (
            "datasets={hotpotqa: 0.5, strategyqa: 0.3, gsm8k: 0.3}",
            "(hotpotqa 0.5, strategyqa 0.3, gsm8k 0.3) sum to 1.1, expected 1",
        ),
        ("pool.intended={easy: 0.5, hard: 0.5}", "pool.intended: lacks medium; expected all of easy, medium, hard"),
        ("shadow.seed=9223372036854775808", "shadow.seed: found '9223372036854775808'"),
        ("pool.recipes.hard.detours=[-1, 2]", "pool.recipes.hard.detours.0: found '-1'"),
        ("ticket.ttl_hours=.inf", "ticket.ttl_hours: found 'inf', expected: Input should be a finite number"),
        ("pool.path=/elsewhere/x.jsonl", "pool.path: found '/elsewhere/x.jsonl', expected a file below the workspace"),
        ("difficulty.metrics_path=data/../../x.jsonl", "a relative path without '..'"),
        ("pool.n=2025-13-45", "is not valid YAML"),
        (
            "training.engine=pure_pt_sft",
            "which provides episodes, but the engine pure_pt_sft learns from demonstrations; use demonstrations or sft",
        ),
        ("training.engine=torch_pp", "for rows of input and output use `rc1 train --config configs/train_local.yaml`"),
        (
            "training.strategy=groups",
            "found 'groups', which provides groups, but the engine torch_ppo learns from episodes; use ppo",
        ),
        ("training.grpo.kl_stop=1", "unknown key 'training.grpo.kl_stop'"),
        ("training.checkpoints.keep_last=0", "training.checkpoints.keep_last: found '0'"),
        ("training.ppo.value_warm_up=64", "training.ppo.value_warm_up is 64, expected less than steps (64)"),
        ("target_kl=0", "target_kl: found '0'"),
        ("seeds=[]", "seeds: found '[]'"),
        ("training.checkpoints.keep_every=24", "keep_every is 24, but keep_last is null, which keeps all"),
        (
            "training.early_stop={metric: eval/env/success, patience: 1, higher_is_better: true, not_before: 1}",
            "which is only measured on held-out rows; set eval_shadow.every_steps too",
        ),
        (
            "training.early_stop.metric=eval/loss",
            "which no evaluation on held-out rows of torch_ppo measures; expected one",
        ),
        (
            "training.early_stop={metric: sec_per_step, patience: 1, higher_is_better: false, not_before: 1}",
            "training.early_stop.metric: found 'sec_per_step', which differs when the same run is repeated",
        ),
    ],
)
def test_error_of_each_fault_names_the_key(override: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(LOCAL, [override])
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "expected a mapping"),
        ("a: [1\n", "is not valid YAML"),
        ("profile: local\nprofile: prod\n", "line 2 is not valid YAML: the key 'profile' is written twice"),
        ("profile: local\n", "the key 'simulate' is missing"),
        ("a: 1\n? [1]\n: 2\n", "line 2 is not valid YAML: the key '[1]' is a list or a mapping"),
        (f"a: {'[' * 300_000}\n", "line 1 is not valid YAML: nested deeper than 100 levels"),
    ],
)
def test_unreadable_file_is_an_error_with_its_path(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert sentence in str(caught.value)
    assert str(path) in str(caught.value)


def test_aliases_and_large_files_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "bomb.yaml"
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    path.write_text("\n".join(["a0: &a0 [x]", *levels]))
    with pytest.raises(ConfigError, match=r"bomb\.yaml: line 2 .*'\*a0'"):
        load_config(path)
    with path.open("wb") as stream:
        stream.truncate(200_000_000)
    with pytest.raises(ConfigError, match=r"bomb\.yaml: .*1,000,000 bytes"):
        load_config(path)


@pytest.mark.parametrize("override", ["pool.n=true", "datasets={gsm8k: true}"])
def test_boolean_is_not_a_number(override: str) -> None:
    with pytest.raises(ConfigError, match="found true"):
        load_config(LOCAL, [override])


def test_missing_or_binary_file_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: .*--config"):
        load_config(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"a\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"\.yaml: .*UTF-8"):
        load_config(tmp_path / "binary.yaml")


def test_thresholds_that_differ_from_the_published_ones_are_listed() -> None:
    loosened = load_config(LOCAL, ["gates.diversity.min_distinct2=0.1"])
    assert {"key": "gates.diversity.min_distinct2", "value": 0.1, "published": 0.6} in departures(
        loosened, published_config()
    )
    assert departures(published_config(), published_config()) == []


def test_altered_published_thresholds_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compared with a loosened published file, a loosened gate would not be listed."""
    file = tmp_path / PUBLISHED
    file.parent.mkdir()
    shutil.copyfile(PROJECT_ROOT / PUBLISHED, file)
    monkeypatch.setattr(rc1_lib.run, "PROJECT_ROOT", tmp_path)
    file.write_text(file.read_text() + "# a remark\n")
    published_config()
    whole = file.read_text()
    for old, new in (("min_distinct2: 0.60", "min_distinct2: 0.1"), ("[1000, 5000, 30000]", "[30000]")):
        file.write_text(whole.replace(old, new))
        with pytest.raises(ConfigError, match=r"^configs/ppo_scale\.yaml: .*SHA-256"):
            published_config()


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("difficulty.target={easy: 0.3, medium: 0.4, hard: 0.3}", "difficulty.target.easy"),
        ("pool.n=19999", "pool.n"),
        ("datasets={hotpotqa: 1.0}", "datasets.gsm8k"),
        ("calibration.n=300", "calibration.n"),
        ("training.reward.turn=0", "training.reward.turn"),
        (
            "reward.old_weights={answered: 0, grounded: 0, well_formed: 0, economical: 0, reasoned: 0, concise: 0, "
            "restrained: 1}",
            "reward.old_weights.answered",
        ),
    ],
)
def test_changed_setting_outside_the_gates_is_listed(override: str, key: str) -> None:
    assert key in [item["key"] for item in departures(load_config(LOCAL, [override]), published_config())]


def test_number_too_large_for_a_report_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"9\.22e\+18$"):
        load_config(LOCAL, [f"gates.length.max_len={10**30}"])


def test_every_setting_is_listed_unless_it_is_declared_free() -> None:
    """A new key is listed by default."""
    published = published_config()
    leaves = flatten(published.model_dump(mode="json"))
    listed = {*decisive(published)}
    free = {key for key in leaves if key not in listed}
    assert free == {key for one in _FREE for key in leaves if f"{key}.".startswith(f"{one}.")}
    assert not [one for one in _FREE if not any(f"{key}.".startswith(f"{one}.") for key in leaves)], (
        "each free key exists"
    )
    assert not [key for key in free if key.startswith(("gates", "reward", "calibration", "difficulty.bo", "ticket"))]


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("judge.base_url=http://user:PLANTED@host/v1", "judge.base_url: the address contains credentials"),
        ("judge.base_url=https://host/v1?x=PLANTED", "has ? or # after the path"),
        ("base_model=https://PLANTED@hub/model", "base_model: the address contains credentials"),
        ("judge.api_key=PLANTED", "unknown key 'judge.api_key'"),
        ("judge.api_key=[PLANTED", "is not valid YAML"),
        ("jugde.base_url=http://PLANTED@host", "unknown section 'jugde'"),
    ],
)
def test_key_in_the_configuration_is_rejected_and_not_shown(override: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(LOCAL, [override])
    assert sentence in str(caught.value)
    assert "PLANTED" not in str(caught.value)


@pytest.mark.parametrize("override", ["pool.n=20000", "gates.waivers={mix: why}", "seeds=[1]"])
def test_sizes_waivers_and_seeds_are_not_departures(override: str) -> None:
    assert departures(load_config(LOCAL, [override]), published_config()) == departures(
        load_config(LOCAL), published_config()
    )


@pytest.mark.parametrize("key", ["require_commit", "require_clean"])
def test_profile_prod_cannot_disable_the_git_gate(key: str) -> None:
    with pytest.raises(ConfigError, match=r"gates\.git\.require_commit .*require_clean"):
        open_run(workspace=PROJECT_ROOT, profile="prod", overrides=[f"gates.git.{key}=false"])


def test_environment_sets_profile_model_and_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUN_MODE", "prod")
    monkeypatch.setenv("SCORER_PROVIDER", "openai")
    monkeypatch.setenv("BASE_MODEL", "some/model")
    config = open_run(workspace=PROJECT_ROOT).config
    assert (config.profile, config.judge.provider, config.base_model) == ("prod", "openai", "some/model")


def test_file_of_another_profile_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"local\.yaml: .*'local'.*'prod'"):
        open_run(workspace=PROJECT_ROOT, profile="prod", config=LOCAL)
    with pytest.raises(ConfigError, match=r"\(--profile .*\).* local, prod$"):
        open_run(workspace=PROJECT_ROOT, profile="test")


@pytest.mark.parametrize(
    ("mode", "provider", "fault"),
    [("1", "rubric", r"REWARD_LIVE_MODE.*'rubric'"), ("maybe", "rubric", "expected one of")],
)
def test_live_mode_that_contradicts_the_judge_is_rejected(
    mode: str, provider: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REWARD_LIVE_MODE", mode)
    with pytest.raises(ConfigError, match=fault):
        open_run(workspace=PROJECT_ROOT, profile="local", overrides=[f"judge.provider={provider}"])


def test_judge_model_with_the_rubric_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"judge\.model .*'gpt-x'.* judge\.provider .*'rubric'"):
        open_run(workspace=PROJECT_ROOT, profile="local", overrides=["judge.model=gpt-x"])
    assert open_run(
        workspace=PROJECT_ROOT, profile="local", overrides=["judge.model=gpt-x", "judge.provider=openai"]
    ).config.judge.model


def test_live_mode_off_is_rejected_in_prod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REWARD_LIVE_MODE", "off")
    with pytest.raises(ConfigError, match=r"^REWARD_LIVE_MODE .*prod"):
        open_run(workspace=PROJECT_ROOT, profile="prod")


def own(tmp_path: Path, text: str) -> Path:
    """A custom file next to copies of the shipped ones that it may extend."""
    for shipped in (LOCAL, PROJECT_ROOT / PUBLISHED):
        shutil.copy(shipped, tmp_path)
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_extending_file_overrides_only_its_own_keys(tmp_path: Path) -> None:
    path = own(tmp_path, "extends: local.yaml\ntraining: {reward: {turn: 0.05}}\nseeds: [1, 2, 3]\n")
    expected = load_config(LOCAL, ["training.reward.turn=0.05", "seeds=[1, 2, 3]"])
    assert load_config(path) == expected
    assert load_config(path, ["training.reward.turn=0.08"]).training.reward.turn == 0.08
    run = open_run(config=path, workspace=tmp_path / "ws")
    assert [file.name for file in run.config_files] == ["mine.yaml", "local.yaml", "ppo_scale.yaml"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("extends: other.yaml\n", "mine.yaml: extends: other.yaml is not in the same folder; copy it there"),
        ("extends: ../local.yaml\n", "extends: found '../local.yaml', expected the name of another file in the same"),
        ("extends: mine.yaml\n", "extends: found 'mine.yaml', expected the name of another file in the same folder"),
    ],
)
def test_invalid_extends_is_rejected(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(own(tmp_path, text))
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"),
    [
        ("ppo_scale.yaml", "clip: 0.2\n", "clip: none\n", "ppo_scale.yaml: clip: found 'none'"),
        ("ppo_scale.yaml", "  cv: 5\n", "  cvv: 5\n", "ppo_scale.yaml: unknown key 'calibration.cvv'; did you mean"),
        ("local.yaml", "lr: 1.2e-3", "lr: none", "local.yaml: lr: found 'none'"),
        ("mine.yaml", "steps: 50", "steps: none", "mine.yaml: steps: found 'none'"),
        ("ppo_scale.yaml", "  cv: 5\n", "", "the key 'calibration.cv' is missing"),
    ],
)
def test_fault_names_the_file_that_has_it(tmp_path: Path, file: str, old: str, new: str, sentence: str) -> None:
    path = own(tmp_path, "extends: local.yaml\nsteps: 50\n")
    faulty = tmp_path / file
    written = faulty.read_text(encoding="utf-8")
    assert old in written
    faulty.write_text(written.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("training.adapter.targets=[q_proj, lm_head]", r"training\.adapter\.targets: found lm_head"),
        ("kl_coef=0", r"kl_coef: .*0, .*\bbeta\b"),
    ],
)
def test_setting_that_dpo_cannot_use_is_rejected_on_loading(setting: str, sentence: str) -> None:
    engine = ["training.engine=trl_dpo", "training.strategy=groups"]
    load_config(LOCAL, engine)
    with pytest.raises(ConfigError, match=sentence):
        load_config(LOCAL, [*engine, setting])
    load_config(LOCAL, ["training.engine=torch_grpo", "training.strategy=groups", setting])


@pytest.mark.parametrize("name", names_of(ENGINES))
def test_engine_accepts_only_the_strategy_that_provides_its_data(name: str) -> None:
    fitting = "ppo" if name in ("torch_ppo", "trl_ppo") else "groups"
    if name in names_of(ENGINES, LearnsFrom.DEMONSTRATIONS):
        fitting = "demonstrations"
    for strategy in ("ppo", "groups", "demonstrations"):
        settings = [f"training.engine={name}", f"training.strategy={strategy}"]
        if strategy == fitting:
            assert load_config(LOCAL, settings).training.engine == name
            continue
        with pytest.raises(ConfigError, match=rf"training\.strategy: .*'{strategy}'.* {name} "):
            load_config(LOCAL, settings)


@pytest.mark.parametrize(
    ("profile", "overrides", "model", "priced"),
    [
        ("prod", ["judge.provider=deepseek_r1"], "deepseek-reasoner", False),
        ("prod", ["judge.provider=gemini"], "gemini-2.5-flash", True),
        ("local", ["judge.provider=gemini"], "gemini-2.5-flash", False),
        ("local", ["judge.provider=gemini", "judge.model=another"], "another", False),
        ("local", ['judge.provider="gemini"'], "gemini-2.5-flash", False),
        ("prod", ["judge.provider=openai", "judge.model=another"], "another", False),
        ("prod", ["judge.model=another", "judge.prices={input: 1, output: 1}"], "another", True),
        ("prod", ['judge.model="gemini-2.5-flash"'], "gemini-2.5-flash", True),
    ],
)
def test_provider_chosen_by_name_gets_its_usual_model(
    profile: str, overrides: list[str], model: str, priced: bool, tmp_path: Path
) -> None:
    judge = open_run(profile=profile, workspace=tmp_path, overrides=overrides).config.judge
    assert judge.model == model
    assert (judge.prices.input is not None) is priced, "prices of another model would be wrong"


def test_another_model_than_the_one_with_prices_needs_its_own(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"judge\.model: found another, .*judge\.prices="):
        open_run(profile="prod", workspace=tmp_path, overrides=["judge.model=another"])
