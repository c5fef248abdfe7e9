"""The ticket pins bytes: one changed byte, another profile, expiry or other code invalidates it."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from rc1_lib.config.file import flatten
from rc1_lib.errors import TicketError
from rc1_lib.evidence import Evidence
from rc1_lib.preflight import issue as issue_module
from rc1_lib.preflight import ticket as ticket_module
from rc1_lib.preflight.issue import issue_ticket
from rc1_lib.preflight.round_files import PASSED
from rc1_lib.preflight.round_report import write_round
from rc1_lib.preflight.ticket import TICKET, other_code, revoke_ticket, verify_ticket
from rc1_lib.provenance.code import PackageState
from rc1_lib.records import GateResult
from rc1_lib.run import FREE_KEYS, Run, open_run
from rc1_lib.workspace.artifacts import PROJECT_ROOT, has_checksum, read_json, write_json

BOUND = ("pool", "shadow", "balanced", "metrics")


def change_one_byte(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)


def error_of(run: Run, **arguments: Any) -> str:
    with pytest.raises(TicketError) as caught:
        verify_ticket(run, **arguments)
    return str(caught.value)


def test_two_passed_rounds_earn_a_valid_ticket(passed: Run) -> None:
    ticket = issue_ticket(passed)
    assert verify_ticket(passed) == ticket
    assert set(ticket["files"]) >= {*BOUND, "weights", "config", "templates", "reference_templates"}
    assert set(ticket["waived"]) == {"git", "anti_simulation", "judge_agreement"}


def test_ticket_of_another_package_is_valid_as_long_as_the_code_that_it_vouches_for_is_the_same(
    passed: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    then, other = (PackageState(version, "ab" * 32, ()) for version in ("1.0", "1.1"))
    for module in (issue_module, ticket_module):
        monkeypatch.setattr(module, "read_code", lambda: then)
    ticket = issue_ticket(passed)
    assert (ticket["commit"], ticket["package"]) == (None, {"version": "1.0", "sha256": "ab" * 32})
    assert verify_ticket(passed) == ticket and other_code(ticket) == ""
    monkeypatch.setattr(ticket_module, "read_code", lambda: other)
    change = f"by package 1.0 (SHA-256 {'ab' * 6}), this is package 1.1 (SHA-256"
    assert verify_ticket(passed) == ticket and change in other_code(ticket)
    monkeypatch.setattr(ticket_module, "code_sha256", lambda *_: "0" * 64)
    assert f"the code has changed since it was issued ({change}" in error_of(passed)


def test_reports_have_checksums_and_round_1_the_keys_of_the_original(ticketed: Run) -> None:
    place = ticketed.workspace
    assert revoke_ticket(ticketed, "a reason")
    assert all(has_checksum(place, name) for name in (*PASSED.values(), TICKET))
    report = read_json(place.path(PASSED[1]))
    files = report["files"]
    assert report["ts"] == report["time"] and files["ppo_cfg"] == files["config"]["path"]
    for name, ours in (("shadow_eval", "shadow"), ("seed_pool", "pool"), ("seed_pool_balanced", "balanced")):
        assert (files[name], files[f"{name}_sha"]) == (files[ours]["path"], files[ours]["sha256"])


@pytest.mark.parametrize("name", BOUND)
def test_one_changed_byte_of_a_pinned_file_invalidates_the_ticket(ticketed: Run, name: str) -> None:
    path = Evidence(ticketed).path(name)
    change_one_byte(path)
    assert f"{path.name} has changed" in error_of(ticketed)


def test_workspace_copy_that_differs_from_a_pinned_file_invalidates_the_ticket(ticketed: Run) -> None:
    """Training prefers the workspace's copy of an input over the project's."""
    given = "templates/pack_v2/maths.en.json"
    source, target = ticketed.workspace.find(given), ticketed.workspace.path(given)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes() + b" ")
    assert "has changed" in error_of(ticketed)


def test_ticket_pins_the_files_of_the_base_model(ticketed: Run) -> None:
    assert verify_ticket(ticketed)["files"]["base"]["path"] == "models/embedded"
    brought = ticketed.workspace.path("models/embedded")
    shutil.copytree(ticketed.workspace.find("models/embedded"), brought)
    assert verify_ticket(ticketed)
    (brought / ".cache").mkdir()  # downloads leave such folders; only files count
    assert verify_ticket(ticketed)
    change_one_byte(brought / "model.safetensors")
    assert "models/embedded has changed" in error_of(ticketed)


def test_expired_ticket_is_invalid(ticketed: Run) -> None:
    hours = ticketed.config.ticket.ttl_hours
    verify_ticket(ticketed, at=datetime.now(UTC) + timedelta(hours=hours - 0.1))
    assert "expired" in error_of(ticketed, at=datetime.now(UTC) + timedelta(hours=hours + 0.1))
    end = datetime.fromisoformat(read_json(ticketed.workspace.path(TICKET))["expires"])
    verify_ticket(ticketed, at=end - timedelta(seconds=1))
    assert "expired" in error_of(ticketed, at=end), "it expires at exactly this moment"


def test_local_ticket_is_invalid_for_a_prod_run(ticketed: Run) -> None:
    prod = open_run(profile="prod", workspace=ticketed.workspace.root)
    assert "not for 'prod'" in error_of(prod)


FREE = {
    "pool.workers": 3, "training.processes": 2, "judge.limits.rps": 5.0,
    "training.tracking.to": ["mlflow"],
    "training.checkpoints.grace_s": 5.0,
}  # fmt: skip


def test_ticket_is_valid_for_any_value_of_a_free_key(ticketed: Run) -> None:
    """These keys change no pinned byte."""
    assert all(any(f"{key}.".startswith(f"{free}.") for key in FREE) for free in FREE_KEYS)
    changes = [f"{key}={orjson.dumps(value).decode()}" for key, value in FREE.items()]
    other = open_run(profile="local", workspace=ticketed.workspace.root, overrides=[*ticketed.overrides, *changes])
    before, now = (flatten(ticket["config"]) for ticket in (verify_ticket(other), issue_ticket(other)))
    assert [key for key, value in FREE.items() if not now[key] == value != before[key]] == []
    verify_ticket(ticketed)


def test_changed_judge_instructions_invalidate_the_ticket(ticketed: Run) -> None:
    own = ticketed.workspace.path("configs/judge/v1.yaml")
    own.parent.mkdir(parents=True)
    own.write_text((PROJECT_ROOT / "configs/judge/v1.yaml").read_text().replace("half way", "in the middle"))
    assert "configs/judge/v1.yaml has changed" in error_of(ticketed)
    assert "the judge differs" in error_of(ticketed)


def test_other_code_invalidates_the_ticket(ticketed: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticket_module, "code_sha256", lambda *_: "0" * 64)
    assert "the code has changed" in error_of(ticketed)


def test_revoked_ticket_is_invalid_with_its_first_reason(ticketed: Run) -> None:
    assert revoke_ticket(ticketed, "the nightly run found a changed pool")
    assert revoke_ticket(ticketed, "another reason")
    assert "the nightly run found a changed pool" in error_of(ticketed)
    assert "was edited" not in error_of(ticketed)


def test_missing_ticket_is_reported(passed: Run) -> None:
    assert "there is no ticket" in error_of(passed)
    assert not revoke_ticket(passed, "nothing there")


def test_older_copy_of_a_revoked_ticket_is_invalid(ticketed: Run) -> None:
    place = ticketed.workspace.path(TICKET)
    old = place.read_bytes()
    time.sleep(1.1)  # times are kept to the second
    issue_ticket(ticketed)
    revoke_ticket(ticketed, "for the test")
    place.write_bytes(old)
    assert "it was revoked at" in error_of(ticketed) and "for the test" in error_of(ticketed)


def test_verdicts_of_this_process_count_and_not_those_of_the_file(passed: Run) -> None:
    place = passed.workspace.path(PASSED[1])
    judged = {number: read_json(passed.workspace.path(path)) for number, path in PASSED.items()}
    with pytest.raises(TicketError, match=r"\bround 1 .*passed\b"):
        issue_ticket(passed, {**judged, 1: {**judged[1], "pass": False}})
    write_json(place, {**judged[1], "pass": False})
    assert issue_ticket(passed, judged)


@pytest.mark.parametrize("change", [{"code_sha256": "0" * 64}, {"config_sha256": "0" * 64}])
def test_round_of_other_code_or_settings_earns_no_ticket(passed: Run, change: dict[str, Any]) -> None:
    path = passed.workspace.path(PASSED[1])
    write_json(path, {**read_json(path), **change})
    with pytest.raises(TicketError, match="round 1 was run with other code or another configuration"):
        issue_ticket(passed)


def test_file_changed_after_the_rounds_earns_no_ticket(passed: Run) -> None:
    change_one_byte(Evidence(passed).path("pool"))
    with pytest.raises(TicketError, match=r"data/rollouts/rc1_seed\.jsonl .*round 1\b"):
        issue_ticket(passed)


def test_failed_round_earns_no_ticket(passed: Run, verdicts: dict[int, list[GateResult]]) -> None:
    failed = [GateResult(result.name, error="broken") if result.name == "mix" else result for result in verdicts[2]]
    write_round(passed, 2, failed)
    assert not passed.workspace.path(PASSED[2]).exists()
    with pytest.raises(TicketError, match=r"\bround 2 .*passed\b"):
        issue_ticket(passed)
