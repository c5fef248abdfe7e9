"""The package of a run: its contents, what stops it, and that its bytes are reproducible."""

from __future__ import annotations

import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from rc1_lib.errors import RC1Error, TicketError
from rc1_lib.preflight.ticket import revoke_ticket
from rc1_lib.release.contents import LOCK, packed
from rc1_lib.release.package import write_package
from rc1_lib.release.ready import check_ready, check_seeds
from rc1_lib.release.verifier import MANIFEST, SUMS, verify
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import read_json, write_json
from rc1_lib.workspace.file_hashes import sha256_file
from tests.evaluation.tables import PPO
from tests.trained import evaluated


def names(run: Run, package: str) -> list[str]:
    with tarfile.open(run.workspace.path(package)) as archive:
        return archive.getnames()


def test_package_contains_what_checking_and_repeating_the_run_needs(own: Run) -> None:
    ready = check_ready(own)
    package = write_package(ready)
    found = verify(own.workspace.path(package.path))
    assert (found.problems, found.sha256) == ([], package.sha256)
    inside = names(own, package.path)
    assert inside[0] == SUMS and len(inside) == package.files + 1
    for name in (
        "configs/local.yaml", "configs/ppo_scale.yaml", "configs/judge/v1.yaml", "configs/weights.json",
        "reports/preflight/ticket.json",
        "reports/preflight/round1.json", "reports/preflight/round2_pass.json", "reports/train.json",
        "reports/metrics.jsonl", "reports/config_effective.yaml", "checkpoints/rc1/step_00004/adapter.safetensors",
        "checkpoints/rc1/step_00004/manifest.json", "reports/rc1/weights.sha256", "environment/LICENSE",
        "environment/constraints.txt", LOCK,
        f"reports/ppo_eval_{ready.key}.json", "reports/rc1/rc1_seed.manifest.json",
    ):  # fmt: skip
        assert name in inside, name
    assert any(name.startswith("templates/pack_v1/") for name in inside)
    assert not [name for name in inside if name.startswith(("data/rollouts", "logs"))]
    with tarfile.open(own.workspace.path(package.path)) as archive:
        manifest = archive.extractfile(MANIFEST)
        assert manifest is not None
        artifacts = orjson.loads(manifest.read())["artifacts"]
    for name in ("shadow", "pool", "balanced", "weights", "base", "ticket", "ppo_eval", "checkpoint seed 20250820"):
        assert len(artifacts[name]["sha256"]) == 64
    assert artifacts["pool"]["sha256"] == sha256_file(own.workspace.path(own.config.pool.path))


def test_two_builds_have_the_same_hash_which_is_recorded(own: Run) -> None:
    first = write_package(check_ready(own))
    own.workspace.path(first.path).unlink()
    assert write_package(check_ready(own)) == first
    listed = own.workspace.checksum_path(first.path).read_text()
    assert listed == f"{first.sha256}  {first.path}\n"


def test_secret_in_a_report_stops_the_release_and_is_not_shown(own: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCORER_API_KEY", "sk-do-not-show-9231")
    path = own.workspace.path("reports/metrics.jsonl")
    path.write_bytes(path.read_bytes() + b'{"step": 5, "note": "sk-do-not-show-9231"}\n')
    with pytest.raises(RC1Error, match=r"metrics\.jsonl: .*secret") as caught:
        write_package(check_ready(own))
    assert "do-not-show" not in str(caught.value)
    assert not list(own.workspace.path("reports/release").glob("*.tar"))


def test_secret_in_a_configuration_stops_the_release_and_words_in_a_dialogue_do_not(own: Run) -> None:
    evaluated(own, examples="[user] The secret: it was in Ostwick all along. My password = sesame\n")
    write_package(check_ready(own))
    path = own.workspace.path("reports/config_effective.yaml")
    path.write_text(f"{path.read_text()}\napi_key: sesame-0123\n")
    with pytest.raises(RC1Error, match=r"config_effective\.yaml: .*secret"):
        write_package(check_ready(own))


def test_revoked_ticket_stops_the_release(own: Run) -> None:
    revoke_ticket(own, "a test")
    with pytest.raises(TicketError, match=r": a test$"):
        check_ready(own)


def test_failed_evaluation_stops_the_release(own: Run) -> None:
    evaluated(own, replace(PPO, asks_needed=0.0, asks_clear=0.0))
    with pytest.raises(RC1Error, match=r"ppo_eval .*\(recall\)"):
        check_ready(own)


def test_edited_episode_stops_the_release(own: Run) -> None:
    path = own.workspace.path(check_ready(own).evaluation["episodes"]["path"])
    path.write_bytes(path.read_bytes().replace(b'"solved":false', b'"solved":true', 1))
    with pytest.raises(RC1Error, match=r"episodes\.jsonl: does not match"):
        check_ready(own)


def test_a_release_in_prod_has_as_many_seeds_as_are_wanted(own: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the one seed that passes could be released, and nobody would hear of the others."""
    prod = replace(own, config=own.config.model_copy(update={"profile": "prod"}))
    path = own.workspace.path("reports/train.json")
    write_json(path, {**read_json(path), "config_sha256": prod.config_sha256})
    monkeypatch.setattr("rc1_lib.release.ready.verify_ticket", lambda run: {})  # its ticket is of profile local
    monkeypatch.setattr("rc1_lib.release.ready.why_outdated", lambda training, ticket: "")
    with pytest.raises(RC1Error, match=r"1 of the \d seeds were trained, gates\.training\.min_seeds wants 3"):
        check_ready(prod)
    check_seeds(prod, 3)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"evaluation": None}, "not evaluated"),
        ({"evaluation": None, "pass": False, "message": "it collapsed"}, "ended without a policy: it collapsed"),
        ({"runs": [{"seed": "x", "checkpoint": "c", "sha256": ""}]}, r"train\.json: does not have the form .*'x'"),
    ],
)
def test_inconsistent_training_report_stops_the_release(change: dict[str, object], fault: str, own: Run) -> None:
    path = own.workspace.path("reports/train.json")
    write_json(path, {**read_json(path), **change})
    with pytest.raises(RC1Error, match=fault):
        check_ready(own)


def test_altered_or_unevaluated_checkpoint_stops_the_release(own: Run) -> None:
    adapter = own.workspace.path("checkpoints/rc1/step_00004/adapter.safetensors")
    before = adapter.read_bytes()
    adapter.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    with pytest.raises(RC1Error, match=r"adapter\.safetensors: .*SHA-256"):
        check_ready(own)
    adapter.write_bytes(before)
    path = own.workspace.path("reports/train.json")
    body = read_json(path)
    other = "checkpoints/rc1/step_00002"
    manifest = sha256_file(own.workspace.path(f"{other}/manifest.json"))
    write_json(path, {**body, "runs": [{**body["runs"][0], "checkpoint": other, "sha256": manifest}]})
    with pytest.raises(RC1Error, match=r"reports/ppo_eval_"):
        check_ready(own)


def test_file_that_changes_after_it_was_verified_stops_the_package(own: Run) -> None:
    ready = check_ready(own)
    path = own.workspace.path("reports/preflight/round1.json")
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(RC1Error, match=r"round1\.json: changed"):
        write_package(ready)


def test_linked_file_is_packed_under_the_name_of_the_link(own: Run, tmp_path: Path) -> None:
    path = own.workspace.path("reports/metrics.jsonl")
    shutil.move(path, tmp_path / "elsewhere.jsonl")
    path.symlink_to(tmp_path / "elsewhere.jsonl")
    assert packed(check_ready(own))["reports/metrics.jsonl"] == path
