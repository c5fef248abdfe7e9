"""A run's recorded effective configuration reopens exactly that run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import yaml

from rc1_lib.config.recorded_opening import opening_of
from rc1_lib.errors import ConfigError, TicketError
from rc1_lib.preflight.ticket import verify_ticket
from rc1_lib.run import EFFECTIVE, Run, open_run, remembered_config
from rc1_lib.workspace.artifacts import PROJECT_ROOT

SETTINGS = ("pool.n=600", "gates.waivers={judge_agreement: no labels \u00a0 yet}", "lr=0.00001")


def recorded(root: Path, *settings: str, **more: str) -> Run:
    run = open_run(workspace=root, overrides=settings, **more)  # type: ignore[arg-type]
    run.write_effective_config()
    return run


def test_effective_configuration_reopens_the_same_run(tmp_path: Path) -> None:
    run = recorded(tmp_path, *SETTINGS)
    for config in (EFFECTIVE, str(tmp_path / EFFECTIVE)):
        reopened = open_run(workspace=tmp_path, config=config)
        assert reopened == run
    written = (tmp_path / EFFECTIVE).read_bytes()
    reopened.write_effective_config()
    assert (tmp_path / EFFECTIVE).read_bytes() == written
    assert open_run(workspace=tmp_path, config=EFFECTIVE, overrides=["steps=20"]).config.steps == 20


def test_ticket_is_valid_for_the_reopened_run(opened: Run, tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    shutil.copytree(opened.workspace.root, root, ignore=shutil.ignore_patterns("logs"))
    run = recorded(root, *opened.overrides)
    assert verify_ticket(open_run(workspace=root, config=EFFECTIVE)) == verify_ticket(run)
    with pytest.raises(TicketError, match=r"\(lr .*0\.5.*0\.01\)"):
        verify_ticket(open_run(workspace=root, config=EFFECTIVE, overrides=["lr=0.5"]))


def test_copied_configuration_names_no_address_unless_the_caller_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCORER_BASE_URL", raising=False)
    shutil.copytree(PROJECT_ROOT / "configs", tmp_path / "configs")
    copy, address = tmp_path / "configs/local.yaml", "https://elsewhere.example/v1"
    assert open_run(workspace=tmp_path).config_path == copy
    body = yaml.safe_load(copy.read_text(encoding="utf-8"))
    body.setdefault("judge", {})["base_url"] = address
    copy.write_text(yaml.safe_dump(body), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"local\.yaml: .*where a key is sent"):
        open_run(workspace=tmp_path)
    named = [open_run(workspace=tmp_path, config=copy)]
    section = named[0].config.judge.model_dump_json()
    for override in (f"judge.base_url={address}", f"judge={section}"):
        named.append(open_run(workspace=tmp_path, overrides=[override]))
    monkeypatch.setenv("SCORER_BASE_URL", address)
    assert {run.config.judge.base_url for run in (*named, open_run(workspace=tmp_path))} == {address}


def test_recorded_prices_and_model_serve_no_other_judge(tmp_path: Path) -> None:
    recorded(tmp_path, "judge.provider=gemini", "judge.prices={input: 0.1, output: 0.4}")

    def judge(*overrides: str) -> tuple[str | None, float | None]:
        found = open_run(workspace=tmp_path, config=EFFECTIVE, overrides=overrides).config.judge
        return found.model, found.prices.input

    assert judge() == judge("judge.provider=gemini") == ("gemini-2.5-flash", 0.1)
    assert judge("judge.provider=deepseek_r1") == ("deepseek-reasoner", None)
    assert judge("judge.model=another") == ("another", None)
    assert judge("judge.provider=rubric") == (None, None)


@pytest.mark.parametrize("written", ["openai", "rubric"])
def test_address_serves_no_other_provider(tmp_path: Path, written: str) -> None:
    """The rubric calls nobody, so an address next to it is that of a server that speaks OpenAI's protocol."""
    own, theirs = "http://127.0.0.1:9/v1", "http://127.0.0.1:8/v1"
    body = open_run(workspace=tmp_path).config.model_dump(mode="json")
    body["judge"] |= {"provider": written, "base_url": own}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(body))

    def address(config: str, *overrides: str) -> str | None:
        return open_run(workspace=tmp_path, config=config, overrides=overrides).config.judge.base_url

    def addresses(config: str) -> list[str | None]:
        found = [address(config, f"judge.provider={one}") for one in ("openai", "gemini")]
        return [*found, address(config, "judge.provider=gemini", f"judge.base_url={theirs}")]

    assert addresses("mine.yaml") == [own, None, theirs]
    for provider in ("rubric", "openai", "gemini"):
        run = recorded(tmp_path, f"judge.provider={provider}", config="mine.yaml")
        assert open_run(workspace=tmp_path, config=EFFECTIVE) == run
        assert addresses(EFFECTIVE) == [own, None, theirs]
    recorded(tmp_path, f"judge.base_url={theirs}", config="mine.yaml")
    assert addresses(EFFECTIVE) == [theirs, None, theirs]


@pytest.mark.parametrize("edited", [EFFECTIVE, "configs/local.yaml"])
def test_edited_recorded_configuration_is_rejected(tmp_path: Path, edited: str) -> None:
    shipped = open_run(workspace=PROJECT_ROOT).config_files
    (tmp_path / "configs").mkdir()
    for file in shipped:
        (tmp_path / "configs" / file.name).write_bytes(file.read_bytes())
    recorded(tmp_path, *SETTINGS)
    path = tmp_path / edited
    before = path.read_text()
    path.write_text(
        before.replace("n: 600", "n: 601") if edited == EFFECTIVE else before.replace("steps: ", "steps: 1")
    )
    assert path.read_text() != before
    with pytest.raises(ConfigError, match=r"config_effective\.yaml: .*configs/local\.yaml"):
        open_run(workspace=tmp_path, config=EFFECTIVE)


def test_secrets_and_outside_paths_are_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCORER_API_KEY", "sk-word-4711-word-4711")
    recorded(tmp_path / "w", "gates.waivers={judge_agreement: sk-word-4711-word-4711}")
    assert opening_of(tmp_path / "w" / EFFECTIVE) is None
    assert "4711" not in (tmp_path / "w" / EFFECTIVE).read_text()
    elsewhere = tmp_path / "mine.yaml"
    elsewhere.write_text(open_run(workspace=tmp_path).effective_config())
    recorded(tmp_path / "v", config=str(elsewhere))
    assert opening_of(tmp_path / "v" / EFFECTIVE) is None
    assert os.fspath(tmp_path) not in (tmp_path / "v" / EFFECTIVE).read_text()
    with pytest.raises(ConfigError, match="does not record how its run was opened"):
        remembered_config(tmp_path / "v")
    assert remembered_config(tmp_path) is None, "nothing was run here"
