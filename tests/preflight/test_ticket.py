"""The ticket vouches for bytes: one changed byte, another profile, a passed date or other code, and it is refused."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from rc1_lib.config.file import flatten
from rc1_lib.errors import ConfigError, RC1Error, TicketError
from rc1_lib.evidence import Evidence
from rc1_lib.preflight import ticket as ticket_module
from rc1_lib.preflight.round_report import PASSED, write_round
from rc1_lib.preflight.ticket import TICKET, issue_ticket, read_ticket, revoke_ticket, verify_ticket
from rc1_lib.preflight.ticket_key import REVOKED
from rc1_lib.provenance.code import PackageState
from rc1_lib.records import GateResult
from rc1_lib.run import FREE_KEYS, Run, open_run
from rc1_lib.workspace.artifacts import PROJECT_ROOT, read_json, sha256_json, write_json

BOUND = ("pool", "shadow", "balanced", "metrics")


def change_one_byte(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)


def refusal(run: Run, **how: Any) -> str:
    with pytest.raises(TicketError) as refused:
        verify_ticket(run, **how)
    return str(refused.value)


def test_two_passed_rounds_earn_a_ticket_that_verifies(passed: Run) -> None:
    ticket = issue_ticket(passed)
    assert verify_ticket(passed) == ticket
    assert set(ticket["files"]) >= {*BOUND, "weights", "config", "templates", "reference_templates"}
    assert set(ticket["waived"]) == {"git", "anti_simulation", "judge_agreement"}


def test_without_a_checkout_it_names_the_package_and_is_refused_by_another(
    passed: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    then, other = (PackageState(version, "ab" * 32, ()) for version in ("1.0", "1.1"))
    monkeypatch.setattr(ticket_module, "INSTALLED", True)
    monkeypatch.setattr(ticket_module, "read_code", lambda: then)
    monkeypatch.setattr(ticket_module, "read_package", lambda: then)
    ticket = issue_ticket(passed)
    assert (ticket["commit"], ticket["package"]) == (None, {"version": "1.0", "sha256": "ab" * 32})
    assert verify_ticket(passed) == ticket
    monkeypatch.setattr(ticket_module, "read_package", lambda: other)
    change = f"the installed package has changed: the ticket has 1.0 (SHA-256 {'ab' * 6}), this is 1.1 (SHA-256"
    assert change in refusal(passed)


@pytest.mark.parametrize("name", BOUND)
def test_it_is_refused_after_one_byte_of_a_bound_file_changes(ticketed: Run, name: str) -> None:
    path = Evidence(ticketed).path(name)
    change_one_byte(path)
    assert f"{path.name} has changed" in refusal(ticketed)


@pytest.mark.parametrize("name", BOUND)
def test_it_is_refused_when_a_bound_file_is_gone(ticketed: Run, name: str) -> None:
    Evidence(ticketed).path(name).unlink()
    assert "is missing" in refusal(ticketed)


@pytest.mark.parametrize("number", [1, 2])
def test_it_is_refused_after_a_rounds_report_changes(ticketed: Run, number: int) -> None:
    change_one_byte(ticketed.workspace.path(PASSED[number]))
    assert f"the report of round{number}" in refusal(ticketed)


@pytest.mark.parametrize("given", ["configs/weights.json", "templates/pack_v2/maths.en.json"])
def test_it_is_refused_when_another_file_takes_a_bound_ones_place(ticketed: Run, given: str) -> None:
    """The workspace's own copy of an input wins over the project's: bringing one along changes what training reads."""
    source, target = ticketed.workspace.find(given), ticketed.workspace.path(given)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes() + b" ")
    assert "has changed" in refusal(ticketed)


def test_the_base_model_is_among_what_it_vouches_for(ticketed: Run) -> None:
    assert verify_ticket(ticketed)["files"]["base"]["path"] == "models/embedded"
    brought = ticketed.workspace.path("models/embedded")
    shutil.copytree(ticketed.workspace.find("models/embedded"), brought)
    assert verify_ticket(ticketed)
    (brought / ".cache").mkdir()  # downloads leave such folders; only the files are what is read
    assert verify_ticket(ticketed)
    change_one_byte(brought / "model.safetensors")
    assert "models/embedded has changed" in refusal(ticketed)


def test_a_base_on_the_hub_has_no_bytes_to_vouch_for_and_so_is_pinned(passed: Run) -> None:
    run = replace(passed, config=passed.config.model_copy(update={"base_model": "Qwen/Qwen3-4B"}))
    assert "base" not in Evidence(run).names
    with pytest.raises(ConfigError, match=r"^base_model: 'Qwen/Qwen3-4B' .*Qwen/Qwen3-4B@COMMIT"):
        issue_ticket(run)


def test_it_is_refused_once_it_has_expired(ticketed: Run) -> None:
    hours = ticketed.config.ticket.ttl_hours
    verify_ticket(ticketed, at=datetime.now(UTC) + timedelta(hours=hours - 0.1))
    assert "expired" in refusal(ticketed, at=datetime.now(UTC) + timedelta(hours=hours + 0.1))
    end = datetime.fromisoformat(read_json(ticketed.workspace.path(TICKET))["expires"])
    verify_ticket(ticketed, at=end - timedelta(seconds=1))
    assert "expired" in refusal(ticketed, at=end), "it holds until then, and no longer at that moment"


def test_it_is_refused_when_issued_in_the_future(ticketed: Run) -> None:
    assert "issued in the future" in refusal(ticketed, at=datetime.now(UTC) - timedelta(days=1))


def test_a_local_ticket_never_opens_a_prod_run(ticketed: Run) -> None:
    prod = open_run(profile="prod", workspace=ticketed.workspace.root)
    assert "not for 'prod'" in refusal(prod)


def test_it_is_refused_with_another_configuration(ticketed: Run) -> None:
    other = open_run(profile="local", workspace=ticketed.workspace.root, overrides=[*ticketed.overrides, "lr=1e-4"])
    assert "the effective configuration differs (lr is 0.0001, the ticket has 0.0025)" in refusal(other)


FREE = {
    "pool.workers": 3, "training.processes": 2, "judge.limits.rps": 5.0, "judge.limits.attempts": 7,
    "training.learnability.prompts": 24, "training.tracking.project": "other",
    "training.tracking.to": ["mlflow"], "scale_up.approval": True,
}  # fmt: skip


@pytest.mark.parametrize("key", FREE)
def test_it_fits_whatever_no_training_reads(ticketed: Run, key: str) -> None:
    """What it vouches for has no other byte by these."""
    assert any(f"{key}.".startswith(f"{free}.") for free in FREE_KEYS)
    override = f"{key}={orjson.dumps(FREE[key]).decode()}"
    other = open_run(profile="local", workspace=ticketed.workspace.root, overrides=[*ticketed.overrides, override])
    ticket = verify_ticket(other)
    assert flatten(issue_ticket(other)["config"])[key] == FREE[key] != flatten(ticket["config"])[key]
    verify_ticket(ticketed)


def test_every_free_key_is_tried() -> None:
    assert [free for free in FREE_KEYS if not any(f"{key}.".startswith(f"{free}.") for key in FREE)] == []


@pytest.mark.parametrize("setting", ["training.learnability.at_start=30", "gates.learnability.max_cut=0.5"])
def test_what_decides_whether_a_training_starts_is_part_of_it(ticketed: Run, setting: str) -> None:
    other = open_run(profile="local", workspace=ticketed.workspace.root, overrides=[*ticketed.overrides, setting])
    assert f"differs ({setting.replace('=', ' is ')}, the ticket has " in refusal(other)


def test_a_refusal_for_another_configuration_does_not_name_the_number_of_processes(ticketed: Run) -> None:
    changes = ["lr=1e-4", "training.processes=1"]
    other = open_run(profile="local", workspace=ticketed.workspace.root, overrides=[*ticketed.overrides, *changes])
    assert "differs (lr is 0.0001, the ticket has 0.0025);" in refusal(other)


def test_it_is_refused_when_a_word_of_the_judges_instructions_changed(ticketed: Run) -> None:
    own = ticketed.workspace.path("configs/judge/v1.yaml")
    own.parent.mkdir(parents=True)
    own.write_text((PROJECT_ROOT / "configs/judge/v1.yaml").read_text().replace("half way", "in the middle"))
    assert "configs/judge/v1.yaml has changed" in refusal(ticketed)
    assert "the judge differs" in refusal(ticketed)


def test_it_is_refused_without_the_judges_instructions(ticketed: Run) -> None:
    other = open_run(
        profile="local", workspace=ticketed.workspace.root, overrides=[*ticketed.overrides, "judge.spec=v9"]
    )
    assert "configs/judge/v9.yaml is missing" in refusal(other)


def test_it_is_refused_with_another_judge(ticketed: Run) -> None:
    other = open_run(
        profile="local",
        workspace=ticketed.workspace.root,
        overrides=[*ticketed.overrides, "judge.provider=openai", "judge.model=another"],
    )
    assert "the judge differs" in refusal(other)


def test_it_is_refused_by_other_code(ticketed: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticket_module, "code_sha256", lambda: "0" * 64)
    assert "the code has changed" in refusal(ticketed)


@pytest.mark.parametrize("key", ["expires", "profile", "commit"])
def test_an_edited_ticket_is_refused(ticketed: Run, key: str) -> None:
    path = ticketed.workspace.path(TICKET)
    write_json(path, {**read_json(path), key: "2999-01-01T00:00:00+00:00"})
    assert "was edited" in refusal(ticketed)


def test_a_revoked_ticket_is_refused_with_the_reason_and_stays_revoked(ticketed: Run) -> None:
    assert revoke_ticket(ticketed, "the nightly run found a changed pool")
    assert revoke_ticket(ticketed, "another reason")
    assert "the nightly run found a changed pool" in refusal(ticketed)
    assert "was edited" not in refusal(ticketed)


def test_no_ticket_is_a_sentence(passed: Run) -> None:
    assert "there is no ticket" in refusal(passed)
    assert not revoke_ticket(passed, "nothing there")


@pytest.mark.parametrize(
    "change",
    [
        {"revoked": "yes"}, {"expires": "2026-11-21T00:00:00"}, {"files": [1]}, {"reports": [1]},
        {"reports": {"round1": "x"}}, {"issued": None},
        {"issued": "0001-01-01T00:00:00+00:00"}, {"expires": "9999-12-31T23:59:59-12:00"}, {"issued": -62135596800},
    ],
)  # fmt: skip
def test_a_malformed_ticket_is_refused_in_a_sentence(ticketed: Run, change: dict[str, Any]) -> None:
    path = ticketed.workspace.path(TICKET)
    write_json(path, {**read_json(path), **change})
    assert "is not a ticket" in refusal(ticketed)


def test_a_revocation_that_is_struck_out_stays_refused(ticketed: Run) -> None:
    revoke_ticket(ticketed, "for the test")
    path = ticketed.workspace.path(TICKET)
    write_json(path, {**read_json(path), "revoked": None})
    assert "was edited" in refusal(ticketed)


def test_a_copy_of_an_older_ticket_is_refused_also_where_the_revoked_one_is_gone(ticketed: Run) -> None:
    place = ticketed.workspace.path(TICKET)
    old = place.read_bytes()
    time.sleep(1.1)  # times are kept to the second
    issue_ticket(ticketed)
    revoke_ticket(ticketed, "for the test")
    place.write_bytes(old)
    assert "it was revoked at" in refusal(ticketed) and "for the test" in refusal(ticketed)


def test_a_damaged_list_of_revocations_opens_nothing(ticketed: Run) -> None:
    revoke_ticket(ticketed, "for the test")
    ticketed.workspace.path(REVOKED).write_text('{"time": "20')
    with pytest.raises(RC1Error, match=r"revoked\.jsonl: .*damaged"):
        verify_ticket(ticketed)


def test_it_is_refused_once_the_calibrations_report_was_edited(ticketed: Run) -> None:
    verify_ticket(ticketed)
    report = ticketed.workspace.path(read_json(ticketed.workspace.path(ticketed.config.weights))["report"]["path"])
    report.write_bytes(report.read_bytes().replace(b'"pass"', b'"Pass"'))
    assert "the gate weights no longer passes" in refusal(ticketed)


def test_it_is_refused_without_the_manifests(ticketed: Run) -> None:
    for manifest in ticketed.workspace.path("reports/rc1").glob("*.manifest.json"):
        manifest.unlink()
    assert "the gate integrity no longer passes" in refusal(ticketed)


def test_verifying_writes_nothing(ticketed: Run) -> None:
    def files() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in ticketed.workspace.root.rglob("*")}

    before = files()
    verify_ticket(open_run(profile="local", workspace=ticketed.workspace.root, overrides=ticketed.overrides))
    assert files() == before


@pytest.mark.parametrize("depth", [300, 100_000])
def test_a_deeply_nested_ticket_is_a_sentence(ticketed: Run, depth: int) -> None:
    path = ticketed.workspace.path(TICKET)
    text = path.read_text()
    path.write_text(text.replace('"config": {', '"config": {"deep": ' + "[" * depth + "]" * depth + ", ", 1))
    assert "is not JSON" in refusal(ticketed)


def test_a_report_that_only_says_pass_is_not_believed(passed: Run) -> None:
    path = passed.workspace.path(PASSED[1])
    report = read_json(path)
    report["gates"] = [gate for gate in report["gates"] if gate["name"] != "leakage"]
    write_json(path, report)
    with pytest.raises(TicketError, match=r"\bround 1 .*passed\b"):
        issue_ticket(passed)


def test_a_ticket_cannot_claim_a_longer_life_than_the_configuration_gives(ticketed: Run) -> None:
    path = ticketed.workspace.path(TICKET)
    body = {**read_json(path), "expires": "2999-01-01T00:00:00+00:00"}
    digest = sha256_json({key: value for key, value in body.items() if key not in ("ticket_sha256", "revoked")})
    write_json(path, {**body, "ticket_sha256": digest})
    assert "claims to be valid for longer" in refusal(ticketed)


@pytest.mark.parametrize("body", ["", "[]", "{}", "not json"])
def test_a_file_that_is_no_ticket_is_a_sentence(passed: Run, body: str) -> None:
    passed.workspace.path(TICKET).write_text(body)
    assert "ticket" in refusal(passed)


def test_a_ticket_that_names_what_no_ticket_binds_is_refused_with_every_cause(ticketed: Run) -> None:
    path = ticketed.workspace.path(TICKET)
    ticket = read_json(path)
    ticket["files"]["ppo_eval"] = {"path": "reports/train.json", "sha256": "0" * 64}
    write_json(path, ticket)
    told = refusal(ticketed)
    assert "edited after it was issued" in told and "ppo_eval" in told


def test_times_in_another_form_are_read_as_times(ticketed: Run) -> None:
    path = ticketed.workspace.path(TICKET)
    write_json(path, {**read_json(path), "issued": 1_700_000_000})
    assert "edited after it was issued" in refusal(ticketed)


def test_a_folder_in_a_tickets_place_is_a_sentence(ticketed: Run) -> None:
    path = ticketed.workspace.path(TICKET)
    path.unlink()
    path.mkdir()
    assert "cannot be read (Is a directory); run" in refusal(ticketed)
    assert revoke_ticket(ticketed, "for no reason") is False


def test_a_folder_in_a_rounds_place_is_a_sentence(ticketed: Run) -> None:
    path = ticketed.workspace.path(PASSED[1])
    path.unlink()
    path.mkdir()
    assert "the report of round1" in refusal(ticketed)


def test_a_file_that_merely_exists_earns_no_ticket(passed: Run) -> None:
    write_json(passed.workspace.path(PASSED[2]), {"round": "round2", "pass": True})
    with pytest.raises(TicketError, match=r"\bround 2 .*passed\b"):
        issue_ticket(passed)


def test_no_ticket_when_a_file_changed_between_the_rounds_and_the_ticket(passed: Run) -> None:
    change_one_byte(Evidence(passed).path("pool"))
    with pytest.raises(TicketError, match=r"data/rollouts/rc1_seed\.jsonl .*round 1\b"):
        issue_ticket(passed)


def test_no_ticket_after_a_failed_round(passed: Run, verdicts: dict[int, list[GateResult]]) -> None:
    red = [GateResult(result.name, error="broken") if result.name == "mix" else result for result in verdicts[2]]
    write_round(passed, 2, red)
    assert not passed.workspace.path(PASSED[2]).exists()
    with pytest.raises(TicketError, match=r"\bround 2 .*passed\b"):
        issue_ticket(passed)


def test_a_round_without_one_of_its_gates_has_not_passed(passed: Run, verdicts: dict[int, list[GateResult]]) -> None:
    write_round(passed, 1, [result for result in verdicts[1] if result.name != "leakage"])
    with pytest.raises(TicketError, match=r"\bround 1 .*passed\b"):
        issue_ticket(passed)


def test_the_report_shows_waivers_and_loosened_thresholds(passed: Run) -> None:
    report = read_json(passed.workspace.path(PASSED[2]))
    assert "anti_simulation" in report["waived"]
    changed = {entry["key"]: entry for entry in report["thresholds_changed"]}
    assert changed["gates.resources.min_free_gb"] == {
        "key": "gates.resources.min_free_gb", "value": 0.0, "published": 50.0,
    }  # fmt: skip


def test_issuing_twice_gives_the_newer_ticket_and_a_revoked_one_is_replaced(ticketed: Run) -> None:
    revoke_ticket(ticketed, "for the test")
    time.sleep(1.1)  # times are kept to the second
    issue_ticket(ticketed)
    assert read_ticket(ticketed)["revoked"] is None
    verify_ticket(ticketed)
