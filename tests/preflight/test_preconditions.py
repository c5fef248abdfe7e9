"""Errors of a preflight before it builds anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.preflight.preconditions import OWN_WAIVERS, check_preconditions, check_settings
from rc1_lib.run import open_run
from rc1_lib.runtime import libraries

LIVE = ("judge.provider=openai", "judge.base_url=http://127.0.0.1:9/", OWN_WAIVERS)


def test_unusable_live_judge_is_rejected_only_if_the_run_calls_it(tmp_path: Path) -> None:
    run = open_run(workspace=tmp_path, overrides=LIVE)
    with pytest.raises(ConfigError, match=r"judge\.model"):
        check_preconditions(run, calibrates=True, ticket=False)
    check_preconditions(run, calibrates=False, ticket=False)
    check_preconditions(
        open_run(workspace=tmp_path, overrides=(*LIVE, "judge.model=a-model")), calibrates=True, ticket=False
    )
    verified = (*LIVE, "training.reward.judge=0", "training.reward.success=1")
    check_preconditions(open_run(workspace=tmp_path, overrides=verified), calibrates=True, ticket=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("steps=10", r"^the gate training_config would fail: steps is 10, wanted >= "),
        (
            "judge.budget.max_calls=100",
            r"^judge\.budget\.max_calls is 100, but the evaluation of 1 of `seeds` ",
        ),
        ("training.held_out.prompts=599", r"^training\.held_out\.prompts: found 599, .* 600 \(gates\.evaluation\."),
        ("reward.old_weights={charm: 1}", r"^reward\.old_weights weighs charm, "),
        ("training.adapter.targets=[no_proj]", r"no_proj.* training\.adapter\.targets "),
    ],
)
def test_configuration_that_can_never_be_trained_is_rejected_before_a_judge_is_paid(
    setting: str, named: str, tmp_path: Path
) -> None:
    live = open_run(workspace=tmp_path, overrides=(*LIVE, "judge.model=a-model", setting))
    with pytest.raises(ConfigError, match=named):
        check_preconditions(live, calibrates=True, ticket=False)
    check_preconditions(live, calibrates=False, ticket=False)
    check_preconditions(open_run(workspace=tmp_path, overrides=(setting,)), calibrates=True, ticket=False)


def test_pool_of_profile_prod_is_rejected_if_no_scale_up_ends_with_it(tmp_path: Path) -> None:
    other = ("pool.n=3000",)
    check_settings(open_run(profile="prod", workspace=tmp_path))
    check_settings(open_run(profile="local", workspace=tmp_path, overrides=other))
    with pytest.raises(ConfigError, match=r"^scale_up\.sizes: .*3000"):
        check_settings(open_run(profile="prod", workspace=tmp_path, overrides=other))


def test_shipped_waivers_of_the_local_rubric_are_rejected_for_another_judge(tmp_path: Path) -> None:
    live = ("judge.provider=gemini", "judge.model=a-model")
    shipped = open_run(workspace=tmp_path, overrides=live)
    with pytest.raises(ConfigError, match=r"gates\.waivers: anti_simulation, judge_agreement.*'gemini'"):
        check_preconditions(shipped, calibrates=False, ticket=False)
    check_preconditions(open_run(workspace=tmp_path, overrides=(*live, OWN_WAIVERS)), calibrates=False, ticket=False)
    own = (*live, "gates.waivers={anti_simulation: 'our server bills nobody, as the local rubric does'}")
    check_preconditions(open_run(workspace=tmp_path, overrides=own), calibrates=False, ticket=False)
    unjudged = (*live, "training.reward.judge=0", "training.reward.success=1")
    check_preconditions(open_run(workspace=tmp_path, overrides=unjudged), calibrates=False, ticket=False)


@pytest.mark.parametrize("key", ["gates.waivers.judge_agreement", "training.vllm.base_url"])
@pytest.mark.parametrize("overridden", [False, True])
def test_setting_that_contains_a_secret_is_refused_and_not_shown(
    key: str, overridden: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = (f"{key}=https://gateway.example/sk-planted-4711/v1", *([f"{key}=http://127.0.0.1:9/v1"] * overridden))
    check_preconditions(open_run(workspace=tmp_path, overrides=settings), calibrates=False, ticket=False)
    monkeypatch.setenv("RC1_VLLM_API_KEY", "sk-planted-4711")
    with pytest.raises(ConfigError, match=rf"^{key}: contains a secret") as caught:
        check_preconditions(open_run(workspace=tmp_path, overrides=settings), calibrates=False, ticket=False)
    assert "4711" not in str(caught.value)


def test_the_hub_without_its_extra_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "find_spec", lambda name: None)
    run = open_run(workspace=tmp_path, overrides=("sources.use=hub",))
    with pytest.raises(RC1Error, match=r"rc1\[hub\].*not installed: datasets"):
        check_preconditions(run, calibrates=True, ticket=False)
    check_preconditions(run, calibrates=False, ticket=False)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (("judge.provider=openai", "judge.model=m", "gates.waivers={}"), r"labels\.jsonl: file not found.*rc1 label"),
        (("pool.templates_dir=nowhere",), "nowhere: file not found"),
        (("pool.reference_templates_dir=nowhere",), "nowhere: file not found"),
        (("judge.spec=nowhere",), "nowhere"),
        (("gates.reward_hacking.own=[own.py]",), "own.py: cannot be run"),
    ],
)
def test_missing_or_unusable_file_of_the_user_is_refused_before_anything_is_built(
    settings: tuple[str, ...], named: str, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text("def play(scene:")
    with pytest.raises(RC1Error, match=named):
        check_preconditions(open_run(workspace=tmp_path, overrides=settings), calibrates=True, ticket=True)
    assert [path.name for path in tmp_path.iterdir()] == ["own.py"]
