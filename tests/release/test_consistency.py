"""Files of a run that were damaged after it ended: named in a sentence, and no package of them."""

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
    """A run that may be released, looked at once. Never write into it."""
    return check_ready(copied(releasable, tmp_path_factory.mktemp("ready") / "workspace"))


@pytest.fixture(scope="module")
def whole(ready: Ready) -> Files:
    """What would be packed, as it was written."""
    found = {name: path.read_bytes() for name, path in packed(ready).items()}
    check_consistent(ready, found)
    return found


def one(files: Mapping[str, bytes], start: str, end: str) -> str:
    """The one file of such a name."""
    (name,) = (name for name in files if name.startswith(start) and name.endswith(end))
    return name


DAMAGES: tuple[tuple[str, str, str, Callable[[bytes], bytes | None], str], ...] = (
    ("episodes cut short", "reports/ppo_eval_", ".episodes.jsonl", lambda old: old[:1000], "but reports/ppo_eval_"),
    ("no episodes", "reports/ppo_eval_", ".episodes.jsonl", lambda old: None, "is missing, but reports/ppo_eval_"),
    ("a calibration with a byte more", "reports/calibration_", ".json", lambda old: old + b" ", "but configs/weights"),
    ("no calibration", "reports/calibration_", ".json", lambda old: None, "is missing, but configs/weights.json"),
    ("another evaluation", "reports/ppo_eval_", "[h].json", lambda old: old + b" ", ".manifest.json has"),
    ("a list as a manifest", "reports/rc1/rc1_seed.manifest", "", lambda old: b"[]", "not a manifest"),
    ("no manifest", "reports/rc1/rc1_seed.balanced.manifest", "", lambda old: None, "not a manifest"),
    ("a manifest of something else", "reports/rc1/rc1_seed.manifest", "", lambda old: b"{}", "does not match data"),
    ("an empty checksum", "reports/rc1/rc1_seed.sha256", "", lambda old: b"", "is not the SHA-256 of data/rollouts"),
    ("no checksum", "reports/rc1/weights.sha256", "", lambda old: None, "is not the SHA-256 of configs/weights"),
    ("half a configuration", "reports/config_effective", "", lambda old: old[:500], "is not this run's configuration"),
    ("brackets as a configuration", "reports/config_effective", "", lambda old: b"[" * 5000, "is not this run's conf"),
    ("another configuration", "reports/config_effective", "",
     lambda old: old.replace(b"\nsteps: 4\n", b"\nsteps: 400\n"), "is not this run's configuration"),
    ("no metrics", "reports/metrics", "", lambda old: b"", "lacks the metrics of step 1 of 4"),
    ("metrics that end early", "reports/metrics", "", lambda old: old[: old.index(b"\n") + 1], "the metrics of step 2"),
    ("a text as metrics", "reports/metrics", "", lambda old: b"\xff\nnull\n", "lacks the metrics of step 1"),
    ("something else as a picture", "reports/plots/ppo_eval_", "curves.png", lambda old: b"root:x", "not a PNG"),
)  # fmt: skip


@pytest.mark.parametrize(("start", "end", "damage", "said"), [
    pytest.param(*rest, id=kind) for kind, *rest in DAMAGES
])  # fmt: skip
def test_a_file_that_is_not_what_vouches_for_it_says_is_named(
    ready: Ready, whole: Files, start: str, end: str, damage: Callable[[bytes], bytes | None], said: str
) -> None:
    evaluation = f"reports/ppo_eval_{ready.key}.json"
    name = evaluation if end == "[h].json" else one(whole, start, end)
    changed = damage(whole[name])
    rest = {kept: content for kept, content in whole.items() if kept != name}
    with pytest.raises(RC1Error) as refused:
        check_consistent(ready, rest if changed is None else {**rest, name: changed})
    assert str(refused.value).startswith(f"no release: {ready.run.workspace.path(name)}: ")
    assert said in str(refused.value)


def test_a_report_that_a_round_read_its_verdict_from_has_to_be_there(ready: Ready, whole: Files) -> None:
    name = HACKING.where(ready.run)
    round1 = orjson.dumps({"gates": [{"checks": [{"name": "file", "value": name}]}]})
    rest = {kept: content for kept, content in whole.items() if Path(name).stem not in kept}
    rest |= {PASSED[number]: orjson.dumps({"gates": []}) for number in (1, 2)}
    check_consistent(ready, rest)
    with pytest.raises(RC1Error, match=rf"{Path(name).stem}\.manifest\.json: "):
        check_consistent(ready, {**rest, PASSED[1]: round1})


@pytest.fixture
def reports(ready: Ready, tmp_path: Path) -> Iterator[Run]:
    """A workspace with nothing but the training's report, its evaluation, and what tells who wrote that."""
    for name in ("reports/train.json", *(f"reports/{part}" for part in (f"ppo_eval_{ready.key}.json",)),
                 *(f"reports/rc1/ppo_eval_{ready.key}.{end}" for end in ("manifest.json", "sha256"))):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ready.run.workspace.path(name), tmp_path / name)
    yield open_run(profile="local", workspace=tmp_path, overrides=ready.run.overrides)


def written_again(run: Run, key: str, change: Callable[[Any], object]) -> None:
    """Edit an evaluation, and make its manifest and its checksum fit."""
    name = f"reports/ppo_eval_{key}.json"
    body = read_json(run.workspace.path(name))
    change(body)
    run.workspace.path(name).write_bytes(content := orjson.dumps(body))
    sha256 = hashlib.sha256(content).hexdigest()
    manifest = run.workspace.manifest_path(name)
    write_json(manifest, {**read_json(manifest), "sha256": sha256})
    run.workspace.checksum_path(name).write_text(f"{sha256}  {name}\n")


def fail_first(body: Any) -> None:
    body["gate"]["checks"][0]["value"] = -1


FORGERIES: tuple[tuple[str, Callable[[Any], object], str], ...] = (
    ("a check that is red", fail_first, "failed (held-out prompts of a seed, fewest)"),
    ("without a check", lambda body: body["gate"]["checks"].pop(0), "the checks held-out prompts of a seed"),
    ("of another gate", lambda body: body["gate"].update(name="git"), "its gate is git"),
    ("without a verdict", lambda body: body["gate"].update(checks=[], evidence=None), "gate: is not a verdict of"),
    ("passed by a number", lambda body: body.update({"pass": 7}), "the gate ppo_eval failed"),
    ("of another name", lambda body: body.update(key="../../etc/x"), "has another name"),
    ("without checkpoints", lambda body: body.pop("checkpoints"), "checkpoints: Field required"),
    ("a list of episodes", lambda body: body.update(episodes=[]), "episodes: "),
)  # fmt: skip


@pytest.mark.parametrize(("change", "said"), [pytest.param(*rest, id=kind) for kind, *rest in FORGERIES])
def test_an_evaluation_that_was_edited_together_with_its_manifest_is_judged_again(
    reports: Run, ready: Ready, change: Callable[[Any], object], said: str
) -> None:
    assert _evaluation(reports, ready.training)["key"] == ready.key
    written_again(reports, ready.key, change)
    with pytest.raises(RC1Error) as refused:
        _evaluation(reports, ready.training)
    assert said in str(refused.value)


@pytest.mark.parametrize("named", ["reports/x\0.json", "../ppo_eval_0.json", "/etc/ppo_eval_0.json", "a\n.json"])
def test_an_evaluation_of_an_odd_name_is_none(reports: Run, ready: Ready, named: str) -> None:
    path = reports.workspace.path("reports/train.json")
    write_json(path, {**read_json(path), "evaluation": named})
    with pytest.raises(RC1Error, match=r"train\.json: .*evaluation"):
        _evaluation(reports, ready.training)


@pytest.mark.parametrize("checkpoint", ["/etc", "../x", "checkpoints/\0"])
def test_a_checkpoint_outside_the_workspace_is_none(reports: Run, checkpoint: str) -> None:
    path = reports.workspace.path("reports/train.json")
    body = read_json(path)
    write_json(path, {**body, "runs": [{**body["runs"][0], "checkpoint": checkpoint}]})
    with pytest.raises(RC1Error, match=r"train\.json: .*checkpoint"):
        _training(reports)


def test_a_report_that_cannot_be_read_is_no_training_that_failed(reports: Run) -> None:
    path = reports.workspace.path("reports/train.json")
    path.unlink()
    path.symlink_to(path.name)
    with pytest.raises(RC1Error, match=r"train\.json: .*\(Too many levels of symbolic links\)"):
        _training(reports)


@pytest.mark.parametrize("name", ["adapter.safetensors", "manifest.json"])
def test_a_pipe_in_a_checkpoint_is_not_waited_for(ready: Ready, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "step_00004"
    shutil.copytree(ready.run.workspace.path(CHECKPOINT), folder)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(RC1Error, match=rf"{name}: .*\(.*\bpipe\b.*\)"):
        read_verified(folder)


def test_a_link_in_a_circle_has_a_name_like_any_other_file(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert Workspace(tmp_path).name(tmp_path / "loop") == "loop"


def test_what_a_link_leads_to_is_packed_under_the_links_own_name(ready: Ready, tmp_path: Path) -> None:
    path = ready.run.workspace.path("reports/metrics.jsonl")
    elsewhere = tmp_path / "elsewhere.jsonl"
    shutil.copy(path, elsewhere)
    path.rename(aside := path.with_suffix(".aside"))
    try:
        path.symlink_to(elsewhere)
        assert packed(ready)["reports/metrics.jsonl"] == path
    finally:
        aside.replace(path)
