"""Files of a run that were damaged after it ended are named in an error and are not packed."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from rc1_lib.calibration.reward_hacking import HACKING
from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.gate import task_check
from rc1_lib.preflight.round_report import PASSED
from rc1_lib.release.consistency import check_consistent
from rc1_lib.release.contents import packed
from rc1_lib.release.ready import Ready, _evaluation, _training, check_ready
from rc1_lib.run import Run, open_run
from rc1_lib.training.checkpoint.manifest import read_verified
from rc1_lib.workspace.artifacts import Workspace, read_json, write_json
from tests.once import copied

Files = dict[str, bytes]
CHECKPOINT = "checkpoints/rc1/step_00004"


@pytest.fixture(scope="module")
def ready(releasable: Run, tmp_path_factory: pytest.TempPathFactory) -> Ready:
    """A run that is ready for release, checked once. Read only."""
    return check_ready(copied(releasable, tmp_path_factory.mktemp("ready") / "workspace"))


@pytest.fixture(scope="module")
def whole(ready: Ready) -> Files:
    """The undamaged files that a release packs."""
    found = {name: path.read_bytes() for name, path in packed(ready).items()}
    check_consistent(ready, found)
    return found


def only_file(files: Mapping[str, bytes], start: str, end: str) -> str:
    """The only file whose name starts and ends like this."""
    (name,) = (name for name in files if name.startswith(start) and name.endswith(end))
    return name


DAMAGES: tuple[tuple[str, str, str, Callable[[bytes], bytes | None], str], ...] = (
    ("truncated episodes", "reports/ppo_eval_", ".episodes.jsonl", lambda old: old[:1000], "but reports/ppo_eval_"),
    ("missing episodes", "reports/ppo_eval_", ".episodes.jsonl", lambda old: None, "is missing, but reports/ppo_eval_"),
    ("calibration with an extra byte", "reports/calibration_", ".json", lambda old: old + b" ", "but configs/weights"),
    ("missing calibration", "reports/calibration_", ".json", lambda old: None, "is missing, but configs/weights.json"),
    ("different evaluation", "reports/ppo_eval_", "[h].json", lambda old: old + b" ", ".manifest.json has"),
    ("manifest that is a list", "reports/rc1/rc1_seed.manifest", "", lambda old: b"[]", "not a manifest"),
    ("missing manifest", "reports/rc1/rc1_seed.balanced.manifest", "", lambda old: None, "not a manifest"),
    ("empty manifest", "reports/rc1/rc1_seed.manifest", "", lambda old: b"{}", "match data/"),
    ("empty checksum", "reports/rc1/rc1_seed.sha256", "", lambda old: b"", "SHA-256 of data/rollouts"),
    ("missing checksum", "reports/rc1/weights.sha256", "", lambda old: None, "SHA-256 of configs/weights"),
    ("truncated configuration", "reports/config_effective", "", lambda old: old[:500], "not this run's configuration"),
    ("configuration of brackets", "reports/config_effective", "", lambda old: b"[" * 5000, "this run's configuration"),
    ("different configuration", "reports/config_effective", "",
     lambda old: old.replace(b"\nsteps: 4\n", b"\nsteps: 400\n"), "not this run's configuration"),
    ("empty metrics", "reports/metrics", "", lambda old: b"", "step 1 of 4"),
    ("truncated metrics", "reports/metrics", "", lambda old: old[: old.index(b"\n") + 1], "step 2 of 4"),
    ("metrics that are not JSON", "reports/metrics", "", lambda old: b"\xff\nnull\n", "step 1 of 4"),
    ("picture that is not a PNG", "reports/plots/ppo_eval_", "curves.png", lambda old: b"root:x", "PNG"),
)  # fmt: skip


@pytest.mark.parametrize(("start", "end", "damage", "fault"), [
    pytest.param(*rest, id=kind) for kind, *rest in DAMAGES
])  # fmt: skip
def test_damaged_file_is_named_in_the_error(
    ready: Ready, whole: Files, start: str, end: str, damage: Callable[[bytes], bytes | None], fault: str
) -> None:
    evaluation = f"reports/ppo_eval_{ready.key}.json"
    name = evaluation if end == "[h].json" else only_file(whole, start, end)
    changed = damage(whole[name])
    rest = {kept: content for kept, content in whole.items() if kept != name}
    with pytest.raises(RC1Error) as caught:
        check_consistent(ready, rest if changed is None else {**rest, name: changed})
    assert str(caught.value).startswith(f"no release: {ready.run.workspace.path(name)}: ")
    assert fault in str(caught.value)


def test_report_that_a_round_names_must_have_its_manifest(ready: Ready, whole: Files) -> None:
    name = HACKING.where(ready.run)
    round1 = orjson.dumps({"gates": [{"checks": [{"name": "file", "value": name}]}]})
    rest = {kept: content for kept, content in whole.items() if Path(name).stem not in kept}
    rest |= {PASSED[number]: orjson.dumps({"gates": []}) for number in (1, 2)}
    check_consistent(ready, rest)
    with pytest.raises(RC1Error, match=rf"{Path(name).stem}\.manifest\.json: "):
        check_consistent(ready, {**rest, PASSED[1]: round1})


@pytest.fixture
def reports(ready: Ready, tmp_path: Path) -> Iterator[Run]:
    """A workspace with the training's report and its evaluation, with manifest and checksum, only."""
    for name in ("reports/train.json", *(f"reports/{part}" for part in (f"ppo_eval_{ready.key}.json",)),
                 *(f"reports/rc1/ppo_eval_{ready.key}.{end}" for end in ("manifest.json", "sha256"))):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ready.run.workspace.path(name), tmp_path / name)
    yield open_run(profile="local", workspace=tmp_path, overrides=ready.run.overrides)


def forge_evaluation(run: Run, key: str, change: Callable[[Any], object]) -> None:
    """Edit an evaluation, and update its manifest and checksum to match."""
    name = f"reports/ppo_eval_{key}.json"
    body = read_json(run.workspace.path(name))
    change(body)
    run.workspace.path(name).write_bytes(content := orjson.dumps(body))
    sha256 = hashlib.sha256(content).hexdigest()
    manifest = run.workspace.manifest_path(name)
    write_json(manifest, {**read_json(manifest), "sha256": sha256})
    run.workspace.checksum_path(name).write_text(f"{sha256}  {name}\n")


def fail_first_check(body: Any) -> None:
    body["gate"]["checks"][0]["value"] = -1


def drop_check_of_a_task(body: Any) -> None:
    checks = body["gate"]["checks"]
    checks.remove(next(check for check in checks if check["name"] == task_check("gsm8k")))


FORGERIES: tuple[tuple[str, Callable[[Any], object], str], ...] = (
    ("failed check", fail_first_check, "failed (held-out prompts of a seed"),
    ("missing check", lambda body: body["gate"]["checks"].pop(0), "checks held-out prompts of a seed"),
    ("missing check of a task", drop_check_of_a_task, "checks gsm8k: success and right answers"),
    ("another gate", lambda body: body["gate"].update(name="git"), "gate is git"),
    ("gate without checks", lambda body: body["gate"].update(checks=[], evidence=None), "does not have the form"),
    ("pass as a number", lambda body: body.update({"pass": 7}), "ppo_eval failed"),
    ("another key", lambda body: body.update(key="../../etc/x"), "another name"),
    ("missing checkpoints", lambda body: body.pop("checkpoints"), "'checkpoints' is missing"),
    ("episodes as a list", lambda body: body.update(episodes=[]), "episodes: "),
)  # fmt: skip


@pytest.mark.parametrize(("change", "fault"), [pytest.param(*rest, id=kind) for kind, *rest in FORGERIES])
def test_forged_evaluation_with_a_matching_manifest_is_rejected(
    reports: Run, ready: Ready, change: Callable[[Any], object], fault: str
) -> None:
    assert _evaluation(reports, ready.training)["key"] == ready.key
    forge_evaluation(reports, ready.key, change)
    with pytest.raises(RC1Error) as caught:
        _evaluation(reports, ready.training)
    assert fault in str(caught.value)


@pytest.mark.parametrize("named", ["reports/x\0.json", "../ppo_eval_0.json", "/etc/ppo_eval_0.json", "a\n.json"])
def test_evaluation_path_outside_the_reports_is_rejected(reports: Run, ready: Ready, named: str) -> None:
    path = reports.workspace.path("reports/train.json")
    write_json(path, {**read_json(path), "evaluation": named})
    with pytest.raises(RC1Error, match=r"train\.json: .*evaluation"):
        _evaluation(reports, ready.training)


@pytest.mark.parametrize("checkpoint", ["/etc", "../x", "checkpoints/\0"])
def test_checkpoint_outside_the_workspace_is_rejected(reports: Run, checkpoint: str) -> None:
    path = reports.workspace.path("reports/train.json")
    body = read_json(path)
    write_json(path, {**body, "runs": [{**body["runs"][0], "checkpoint": checkpoint}]})
    with pytest.raises(RC1Error, match=r"train\.json: .*checkpoint"):
        _training(reports)


def test_unreadable_training_report_is_an_error(reports: Run) -> None:
    path = reports.workspace.path("reports/train.json")
    path.unlink()
    path.symlink_to(path.name)
    with pytest.raises(RC1Error, match=r"train\.json: .*\(Too many levels of symbolic links\)"):
        _training(reports)


@pytest.mark.parametrize("name", ["adapter.safetensors", "manifest.json"])
def test_pipe_in_a_checkpoint_is_rejected_without_waiting(ready: Ready, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "step_00004"
    shutil.copytree(ready.run.workspace.path(CHECKPOINT), folder)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(RC1Error, match=rf"{name}: .*\(.*\bpipe\b.*\)"):
        read_verified(folder)


def test_workspace_name_of_a_link_to_itself_is_its_path(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert Workspace(tmp_path).name(tmp_path / "loop") == "loop"


def test_linked_file_is_packed_under_the_name_of_the_link(ready: Ready, tmp_path: Path) -> None:
    path = ready.run.workspace.path("reports/metrics.jsonl")
    elsewhere = tmp_path / "elsewhere.jsonl"
    shutil.copy(path, elsewhere)
    path.rename(aside := path.with_suffix(".aside"))
    try:
        path.symlink_to(elsewhere)
        assert packed(ready)["reports/metrics.jsonl"] == path
    finally:
        aside.replace(path)
