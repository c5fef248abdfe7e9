"""A file of the ticket that is missing, moved or swapped after verification is an error that names it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.errors import ConfigError, RC1Error, TicketError
from rc1_lib.evidence import described
from rc1_lib.preflight.ticket import check_unchanged, read_ticket, verify_ticket, vouched_by
from rc1_lib.provenance.pinned_files import read_vouched
from rc1_lib.run import Run, open_run
from rc1_lib.training.derived import vouched_base
from rc1_lib.training.models import base_name
from rc1_lib.vouched import bound
from rc1_lib.workspace import artifacts
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.once import copied

FROM_PROJECT = (
    "configs/local.yaml", "configs/ppo_scale.yaml", "configs/judge/v1.yaml", "templates/pack_v1", "templates/pack_v2",
    "models/embedded",
)  # fmt: skip
REPORTS = ("round1", "round2", "calibration", "reward_hacking", "overclar_ablation")
KINDS = (
    "shadow", "takes", "pool", "metrics", "balanced", "weights", "judge_baseline", "config", "judge_spec",
    "templates", "reference_templates", "base", *REPORTS,
)  # fmt: skip
HUB = f"Qwen/embedded@{'0123456789' * 4}"


@pytest.fixture(scope="module")
def verified(issued: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A workspace with every file of its ticket, opened by that ticket. Read-only: to write, take `whole`."""
    run = copied(issued, root := tmp_path_factory.mktemp("verified") / "workspace")
    for name in FROM_PROJECT:
        source, target = PROJECT_ROOT / name, root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copyfile(source, target)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(artifacts, "PROJECT_ROOT", root.parent / "project")
        return replace(run, vouched=vouched_by(verify_ticket(run)))


@pytest.fixture
def whole(verified: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A workspace with a ticket and every file of it; the project has none of them."""
    monkeypatch.setattr(artifacts, "PROJECT_ROOT", tmp_path / "project")
    return copied(verified, tmp_path / "workspace")


@pytest.fixture
def opened(whole: Run, verified: Run) -> Run:
    """The run with the hashes of its verified ticket."""
    return replace(whole, vouched=verified.vouched)


def place(run: Run, kind: str) -> Path:
    if kind in REPORTS:
        return run.workspace.path(read_ticket(run)["reports"][kind]["path"])
    return described(kind).path(run)


def edited(path: Path) -> tuple[Path, bytes]:
    """Add a byte to a file, or to one in a folder; gives the file and what it held."""
    path = path if path.is_file() else max(path.rglob("*.json"))
    before = path.read_bytes()
    path.write_bytes(before + b"\n")
    return path, before


def name_of(run: Run, kind: str) -> str:
    return run.workspace.name(place(run, kind))


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def error_of(act: Callable[..., Any], *given: Any) -> str:
    with pytest.raises(RC1Error) as caught:
        act(*given)
    return str(caught.value)


def test_kinds_are_all_that_a_ticket_pins(whole: Run) -> None:
    assert set(vouched_by(verify_ticket(whole))) == set(KINDS) == {*bound(whole), *REPORTS}


def test_changed_value_in_an_extended_configuration_invalidates_the_ticket(whole: Run) -> None:
    file = whole.workspace.path("configs/ppo_scale.yaml")
    written = file.read_text(encoding="utf-8")
    for old, new, difference in (
        ("clip: 0.2\n", "clip: 0.3\n", "clip is 0.3, the ticket has 0.2"),
        ("min_distinct2: 0.60\n", "min_distinct2: 0.1\n", "gates.diversity.min_distinct2 is 0.1, the ticket has 0.6"),
    ):
        file.write_text(written.replace(old, new, 1), encoding="utf-8")
        run = open_run(profile="local", workspace=whole.workspace.root, overrides=whole.overrides)
        with pytest.raises(TicketError, match=rf"configuration .*\({difference}\)"):
            verify_ticket(run)


def test_missing_file_is_named(whole: Run) -> None:
    for kind in KINDS:
        path = place(whole, kind)
        path.rename(aside := path.with_name("aside"))
        assert whole.workspace.name(path) in error_of(verify_ticket, whole)
        aside.rename(path)
    verify_ticket(whole)


@pytest.mark.parametrize("kind", ["pool", "base"])
def test_file_in_the_current_directory_does_not_replace_a_missing_one(
    whole: Run, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, elsewhere = name_of(whole, kind), tmp_path / "elsewhere"
    target = elsewhere / place(whole, kind).relative_to(whole.workspace.root)
    target.parent.mkdir(parents=True)
    place(whole, kind).rename(target)
    monkeypatch.chdir(elsewhere)
    said = error_of(verify_ticket, whole)
    assert name in said


def test_file_swapped_after_the_ticket_was_verified_is_named(opened: Run) -> None:
    for kind in KINDS:
        check_unchanged(opened)
        file, before = edited(place(opened, kind))
        said = error_of(check_unchanged, opened)
        assert f"{name_of(opened, kind)} has changed since the ticket that pins it ({kind}) was verified" in said
        file.write_bytes(before)


@pytest.mark.parametrize("kind", ["balanced", "judge_spec"])
def test_file_is_compared_by_the_bytes_that_are_read(opened: Run, kind: str) -> None:
    assert read_vouched(opened, kind, place(opened, kind)) == place(opened, kind).read_bytes()
    edited(place(opened, kind))
    assert f"{name_of(opened, kind)} has changed since" in error_of(read_vouched, opened, kind, place(opened, kind))
    remove(place(opened, kind))
    assert f"{name_of(opened, kind)} was removed" in error_of(read_vouched, opened, kind, place(opened, kind))


def test_base_is_compared_before_and_after_it_is_read(opened: Run) -> None:
    with vouched_base(opened) as base:
        assert base == str(place(opened, "base"))
    with pytest.raises(TicketError, match=r"models/embedded .*SHA-256"), vouched_base(opened):
        edited(place(opened, "base"))
    with pytest.raises(TicketError, match=r"models/embedded .*SHA-256"), vouched_base(opened):
        raise AssertionError("another base is not read")


def test_base_in_the_current_directory_with_a_hub_name_is_rejected(
    whole: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = replace(whole, config=whole.config.model_copy(update={"base_model": HUB}))
    shutil.copytree(place(whole, "base"), tmp_path / "elsewhere/Qwen/embedded")
    assert base_name(named.config, named.workspace) == HUB
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match=r"base_model: '.*' .*current directory"):
        base_name(named.config, named.workspace)
