"""A run ends with the same bytes in one segment, in several, and after kills and damaged checkpoints."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import torch
from safetensors.torch import load_file, save_file

from rc1_lib.calibration.judge_baseline import record_baseline
from rc1_lib.calibration.weights_file import NoWeightsError
from rc1_lib.environment.outcome import summary
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.evaluation.policies import player_of
from rc1_lib.judge.maintenance import paid_in
from rc1_lib.run import Run
from rc1_lib.training import rows as row_selection
from rc1_lib.training.another_run import AnotherRunError
from rc1_lib.training.callbacks.cap import PausedError
from rc1_lib.training.callbacks.eval_shadow import shadow_evaluations
from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
from rc1_lib.training.checkpoint.ledger import read_ledger
from rc1_lib.training.checkpoint.manifest import fingerprint, steps, write_manifest
from rc1_lib.training.checkpoint.retention import KeepRule, prune
from rc1_lib.training.checkpoint.save_load import load_checkpoint
from rc1_lib.training.episode_judge import checks_of
from rc1_lib.training.ppo_run import Prepared, advance, check_own, known_facts, prepare, resumable, usable_base
from rc1_lib.training.retrain import reach
from rc1_lib.training.run_paths import LEDGER, SFT
from tests.forks import Forks
from tests.judge.bench import dialogues, overrides
from tests.judge_server import Behaviour, running
from tests.judge_server.behaviour import MODEL
from tests.training.killed import until_done
from tests.training.tiny_world import tiny_run
from tests.training.weighed import weigh

Tiny = Callable[..., Run]
KEEPING = (
    "training.collapse.patience=1",
    "training.checkpoints={every_steps: 1, every_minutes: null, keep_last: 2, keep_every: null}",
)
"""A checkpoint per step, and a rule that removes some."""


@pytest.fixture(scope="module")
def whole(tiny_workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which a run was trained to step 4 in one segment. Never write into it."""
    root = tmp_path_factory.mktemp("whole") / "workspace"
    shutil.copytree(tiny_workspace, root)
    torch.set_num_threads(1)
    prepared = prepare(tiny_run(root))
    advance(prepared, first_seed(prepared), 4, lambda _: None)
    return root


def first_seed(prepared: Prepared) -> int:
    return prepared.run.config.seeds[0]


def metrics_of(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (root / "reports/metrics.jsonl").read_text().splitlines()]


def measured(root: Path) -> list[int]:
    return [line["step"] for line in metrics_of(root)]


def end_of(root: Path, last: int = 4) -> str:
    return fingerprint(root / f"checkpoints/rc1/step_{last:05d}")


def go(run: Run, last: int) -> list[str]:
    """Train the run to a step and return its messages."""
    messages: list[str] = []
    prepared = prepare(run)
    assert advance(prepared, first_seed(prepared), last, messages.append).name == f"step_{last:05d}"
    return messages


def test_segments_end_with_the_same_bytes_as_one_segment(tiny: Tiny, whole: Path) -> None:
    run = tiny()
    for last in (1, 2, 4):
        go(run, last)
    assert end_of(run.workspace.root) == end_of(whole)
    assert measured(run.workspace.root) == [1, 2, 3, 4]


def test_run_paused_at_a_cap_continues_under_a_higher_cap_with_the_same_bytes(tiny: Tiny, whole: Path) -> None:
    run = tiny("training.cap.hours=1e-9")
    with pytest.raises(PausedError, match=r"step 1 of 4: .*training\.cap\.hours .*1e-09"):
        go(run, 2)
    assert list(steps(run.workspace.path("checkpoints/rc1"))) == measured(run.workspace.root) == [1]
    with pytest.raises(PausedError, match=r"step 1 of 4: .*training\.cap\.hours "):
        go(run, 2)  # the hours spent are read back, and no further step is trained
    assert measured(run.workspace.root) == [1]
    assert go(tiny("training.cap.hours=1"), 4)[0] == "resumes from step_00001"
    assert end_of(run.workspace.root) == end_of(whole)


def test_shadow_evaluation_is_in_the_metrics_and_does_not_change_the_training(
    tiny: Tiny, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_selection, "SHADOW_ROWS", 6)
    run = tiny("training.eval_shadow.every_steps=3")
    go(run, 2)
    go(run, 4)
    lines = metrics_of(run.workspace.root)
    assert ["eval/env/success" in line for line in lines] == [False, False, True, True]
    prepared, last = prepare(run), "checkpoints/rc1/step_00004"
    adapter = run.workspace.root / last / "adapter.safetensors"
    assert adapter.read_bytes() == (whole / last / "adapter.safetensors").read_bytes()
    with player_of(prepared, first_seed(prepared)) as player:
        player.load_adapter(load_checkpoint(adapter.parent).tensors["adapter"])
        rows = prepared.selection.shadow
        keys = [f"eval_shadow/{row['id']}" for row in rows]
        episodes = player.play(rows, keys, temperature=player.temperature, seed=player.seed, iteration=0)
        metrics: dict[str, float | None] = {"sec_per_step": 100.0}
        (shadow,) = shadow_evaluations(rows, run.config.training.eval_shadow)
        shadow.on_step(SimpleNamespace(step=4, max_steps=4, engine=player), metrics)
    assert metrics["sec_per_step"] > 100, "the evaluation's time must count in the step's, for the cap"
    found = {name: value for name, value in lines[-1].items() if name.startswith("eval/")}
    assert found == {f"eval/{name}": value for name, value in summary([one.outcome for one in episodes]).items()}


EARLY = "training.early_stop={metric: lr, patience: 1, higher_is_better: true, not_before: 3}"  # lr falls


def test_early_stopped_run_stays_stopped_at_the_same_bytes_in_segments(tiny: Tiny) -> None:
    ends = []
    for name, segments in (("one", (4, 4)), ("several", (1, 2, 3, 4))):
        run = tiny(EARLY, name=name)
        prepared = prepare(run)
        paths = [advance(prepared, first_seed(prepared), last, lambda _: None) for last in segments]
        assert paths[-1].name == "step_00003" and measured(run.workspace.root) == [1, 2, 3]
        ends.append(fingerprint(paths[-1]))
    assert ends[0] == ends[1]


def test_damaged_checkpoint_is_reported_and_trained_again(tiny: Tiny, whole: Path) -> None:
    run = copied(whole, tiny)
    adapter = run.workspace.root / "checkpoints/rc1/step_00004/adapter.safetensors"
    content = bytearray(adapter.read_bytes())
    content[-1] ^= 1
    adapter.write_bytes(content)
    messages = go(run, 4)
    assert messages[0].startswith("not used: ") and "adapter.safetensors: has SHA-256" in messages[0]
    assert messages[1] == "resumes from step_00002"
    assert end_of(run.workspace.root) == end_of(whole)
    assert measured(run.workspace.root) == [1, 2, 3, 4]


def test_forged_checkpoint_that_differs_from_the_ledger_is_trained_again(tiny: Tiny, whole: Path) -> None:
    """It has another adapter and a matching manifest."""
    run = copied(whole, tiny)
    folder = run.workspace.path("checkpoints/rc1/step_00004")
    adapter = load_file(folder / "adapter.safetensors")
    save_file({name: tensor + 1.0 for name, tensor in adapter.items()}, folder / "adapter.safetensors")
    write_manifest(folder, 4)
    with pytest.raises(CheckpointError, match=rf"{end_of(run.workspace.root)[:12]}.*ckpt_manifest\.jsonl"):
        resumable(prepare(run), run.config.seeds[0], "latest")
    assert go(run, 4)[1] == "resumes from step_00002"
    assert end_of(run.workspace.root) == end_of(whole)


def test_changed_configuration_is_another_run_and_leaves_the_old_one_alone(tiny: Tiny, whole: Path) -> None:
    old = copied(whole, tiny)
    with pytest.raises(AnotherRunError, match=r"step_00004: .*: lr \(0\.01 .*0\.02 "):
        go(tiny("lr=0.02"), 2)
    assert go(old, 4) == ["resumes from step_00004"]
    assert end_of(old.workspace.root) == end_of(whole)
    assert metrics_of(old.workspace.root) == metrics_of(whole)


def test_other_rows_are_another_run_before_anything_is_prepared(tiny: Tiny, whole: Path) -> None:
    copied(whole, tiny)
    for share, differs in ((0.3, False), (0.2, True)):
        run = tiny(f"training.held_out.share={share}")
        facts = known_facts(run, run.config.seeds[0], row_selection.select_rows(run, usable_base(run)[0]))
        with pytest.raises(AnotherRunError, match=r": rows\.") if differs else nullcontext():
            check_own(run, run.config.seeds[0], facts, start_over=False, notice=print)


def test_start_over_removes_another_runs_files_and_keeps_its_own(tiny: Tiny, whole: Path) -> None:
    root, run, messages = copied(whole, tiny).workspace.root, tiny("lr=0.02"), list[str]()
    prepared = prepare(run)
    seed = first_seed(prepared)
    kept = root / "checkpoints/rc1/best/step_00004"
    shutil.copytree(root / "checkpoints/rc1/step_00004", kept)
    check_own(run, seed, prepared.facts(seed), start_over=True, notice=messages.append)
    assert messages == ["--start-over removed reports/metrics.jsonl and 2 checkpoints of another run in rc1"]
    assert not list(steps(root / "checkpoints/rc1")) and fingerprint(kept) == end_of(whole)
    go(run, 2)
    assert end_of(root, 2) != end_of(whole, 2) and measured(root) == [1, 2]
    check_own(run, seed, prepared.facts(seed), start_over=True, notice=messages.append)
    assert go(run, 2) == ["resumes from step_00002"] and len(messages) == 1


def judged(tiny: Tiny, name: str, *more: str) -> Run:
    return weigh(
        tiny("training.reward.judge=1", "training.reward.success=0.5", "training.reward.turn=0.04", *more, name=name)
    )


def test_lost_checkpoint_of_a_judged_run_is_reproduced_with_its_own_judge_checks(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = judged(tiny, "one", "training.checkpoints.every_steps=1", "training.ppo.value_warm_up=0")
    go(run, 2)
    lost = run.workspace.root / "checkpoints/rc1/step_00001"
    before = fingerprint(lost)
    shutil.rmtree(lost)
    prepared, checks = prepare(run), list[tuple[Path, str]]()
    monkeypatch.setattr(
        "rc1_lib.training.ppo_run.check_grades", lambda run, where: checks.append((run.workspace.root, where)) or ""
    )
    assert fingerprint(reach(prepared, first_seed(prepared), 1, lambda _: None)) == before
    facts = prepared.facts(first_seed(prepared))
    assert checks == [(run.workspace.root, checks_of(facts))], "the baseline and the costs are those of the run"


def test_reproduced_checkpoint_with_other_bytes_is_used(tiny: Tiny, whole: Path) -> None:
    run = copied(whole, tiny)
    ledger, prepared = run.workspace.path(LEDGER), prepare(run)
    ledger.write_text(ledger.read_text().replace(end_of(whole, 2), "0" * 64))  # as if another CPU had written it
    shutil.rmtree(run.workspace.path("checkpoints/rc1/step_00002"))
    path = reach(prepared, first_seed(prepared), 2, lambda _: None)
    assert resumable(prepared, first_seed(prepared), "2") == path.resolve()


def test_changed_reward_weights_make_another_run(tiny: Tiny) -> None:
    run = judged(tiny, "one")
    go(run, 2)
    weigh(run, {"answered": 0.5, "grounded": 0.5})
    with pytest.raises(AnotherRunError, match=r"[:,] judge\b"):
        go(run, 2)


def test_segment_with_judged_reward_begins_with_a_judge_check(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[Run] = []

    def drifted(run: Run, where: str) -> str:
        checked.append(run)
        raise RC1Error("drifted")

    monkeypatch.setattr("rc1_lib.training.ppo_run.check_grades", drifted)
    go(tiny(), 1)
    assert checked == [], "the judge has no weight in the reward"
    run = judged(tiny, "judged")
    with pytest.raises(RC1Error, match="drifted"):
        go(run, 1)
    assert len(checked) == 1
    assert not list(run.workspace.path("checkpoints").glob("rc1/step_*"))


def with_baseline(tiny: Tiny, monkeypatch: pytest.MonkeyPatch, url: str, *more: str) -> Run:
    """A run whose episodes a live, priced judge scores, with a baseline of 30 dialogues."""
    run = tiny(
        "training.reward.judge=1", "training.reward.success=0.5", "training.reward.turn=0.04",
        "judge.baseline.n=30", "judge.samples=2",
        "judge.prices={input: 1, output: 2}", *overrides(url), *more,
    )  # fmt: skip
    rows = pl.DataFrame([{"id": str(place), "messages": messages} for place, messages in enumerate(dialogues(30))])
    monkeypatch.setattr("rc1_lib.calibration.judge_baseline.rows_of", lambda run, kind: rows)
    record_baseline(run)
    return weigh(run, dict(run.config.reward.old_weights), [MODEL])


def test_cap_counts_judge_checks_and_a_paused_run_sends_no_request(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(Behaviour(delay="zero")) as server:
        run = with_baseline(tiny, monkeypatch, server.base_url, "training.cap.usd=1e-6")
        before, requests_per_check = server.stats().answered, 30 * run.config.judge.samples
        for _ in range(2):
            with pytest.raises(PausedError, match=r"step 0 of 4: \$\S+ .*training\.cap\.usd .*1e-06\. "):
                go(run, 4)
            assert server.stats().answered - before == requests_per_check, "only the first check is paid"
        checks = checks_of(prepare(run).facts(run.config.seeds[0]))
        paid = paid_in(run, checks).usd
        # The cap is above two checks, but below two checks and the first step's episodes.
        run = with_baseline(tiny, monkeypatch, server.base_url, f"training.cap.usd={2.02 * paid}")
        with pytest.raises(PausedError, match=r"step 1 of 4: .*training\.cap\.usd .*rc1/step_00001"):
            go(run, 4)
        asked, steps_usd = server.stats().answered, metrics_of(run.workspace.root)[0]["costs/judge_usd"]
        assert paid_in(run, checks).usd == pytest.approx(2 * paid, rel=0.01)
        assert steps_usd > 0 and asked - before > 2 * requests_per_check
        with pytest.raises(PausedError, match=r"step 1 of 4: .*training\.cap\.usd "):
            go(run, 4)
        assert server.stats().answered == asked
        run = with_baseline(tiny, monkeypatch, server.base_url, "training.cap.usd=9")
        assert go(run, 2) == ["resumes from step_00001"]


def test_judge_without_weights_is_rejected_before_the_warm_start(tiny: Tiny) -> None:
    run = tiny("training.reward.judge=1", "training.warm_start.steps=1")
    with pytest.raises(NoWeightsError, match="rc1 weight-calib"):
        prepare(run)
    assert not list(run.workspace.path("checkpoints").glob("*"))


@pytest.mark.parametrize(
    ("settings", "shape", "message"),
    [
        (("training.adapter.targets=[q_proj, lm_head]",), {}, r"\blm_head, .*tie_word_embeddings"),
        (("training.gradient_checkpointing=true",), {"attention_dropout": 0.1}, "attention_dropout 0.1"),
    ],
)
def test_untrainable_settings_are_rejected_before_the_warm_start(
    tiny: Tiny, settings: tuple[str, ...], shape: dict[str, Any], message: str
) -> None:
    run = tiny("training.warm_start.steps=2", *settings)
    base_config = run.workspace.path("base/config.json")
    base_config.write_text(json.dumps(json.loads(base_config.read_text()) | shape))
    with pytest.raises(RC1Error, match=message):
        prepare(run)
    assert not run.workspace.path(SFT).exists()


def test_changed_code_or_seed_makes_another_run(tiny: Tiny, whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = copied(whole, tiny)
    with pytest.raises(AnotherRunError, match=r"[:,] seed\b"):
        resumable(prepare(run), run.config.seeds[1], "checkpoints/rc1/step_00004")
    monkeypatch.setattr("rc1_lib.training.ppo_run.code_sha256", lambda *_: "other")
    with pytest.raises(AnotherRunError, match=r": code \("):
        go(run, 4)


def test_changed_base_makes_another_run(tiny: Tiny, whole: Path) -> None:
    run = copied(whole, tiny)
    settings = run.workspace.root / "base/generation_config.json"
    settings.write_text(settings.read_text() + "\n")
    prepared = prepare(run)
    with pytest.raises(AnotherRunError, match=r": reference\. "):
        resumable(prepared, first_seed(prepared), "4")


def test_keys_without_effect_on_steps_do_not_make_another_run(tiny: Tiny) -> None:
    one, other = prepare(tiny()), prepare(tiny("training.segment_steps=1", "training.checkpoints.every_steps=9"))
    assert one.facts(1) == other.facts(1)


@pytest.mark.parametrize(
    ("name", "old", "new", "differs"),
    [
        ("data/rollouts/rc1_seed.balanced.jsonl", "coins", "pence", "pool"),
        ("data/rollouts/rc1_seed.metrics.jsonl", '"hard"', '"medium"', "rows"),
    ],
)
def test_changed_contents_or_buckets_of_rows_make_another_run(
    tiny: Tiny, name: str, old: str, new: str, differs: str
) -> None:
    run = tiny()
    before = prepare(run).facts(1)
    path = run.workspace.path(name)
    text = path.read_text()
    path.write_text(text.replace(old, new, 30))  # some of them are held out
    assert path.read_text() != text
    found = prepare(run).facts(1)
    assert [key for key in before if before[key] != found[key]] == [differs]


def test_step_beyond_the_configured_steps_is_rejected(tiny: Tiny) -> None:
    prepared = prepare(tiny())
    with pytest.raises(ConfigError, match=r"step 5\b.*`steps` .*4; "):
        advance(prepared, first_seed(prepared), 5)


def test_resuming_from_a_removed_checkpoint_names_the_retention_rule(tiny: Tiny, whole: Path) -> None:
    run = copied(whole, tiny)
    prune(run.workspace.path("checkpoints/rc1"), run.workspace.path(LEDGER), KeepRule(1))
    rule = r"training\.checkpoints \(keep_last is None, keep_every None\)"
    with pytest.raises(CheckpointError, match=rf"{rule}.*: 4; .*--resume-from"):
        resumable(prepare(run), run.config.seeds[0], "2")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_repeatedly_killed_run_ends_with_the_same_bytes(tiny: Tiny, whole: Path, forks: Forks) -> None:
    root = tiny().workspace.root
    assert until_done(forks, root, *KEEPING) >= 1
    assert end_of(root) == end_of(whole)
    assert measured(root) == [1, 2, 3, 4]
    assert list(steps(root / "checkpoints/rc1")) == [3, 4], "the last two"
    assert [line["step"] for line in read_ledger(root / LEDGER) if "removed" in line] == [1, 2]


def copied(whole: Path, tiny: Tiny) -> Run:
    """A run in a copy of the finished run's workspace."""
    run = tiny()
    for part in ("checkpoints", "reports"):
        shutil.copytree(whole / part, run.workspace.root / part, symlinks=True)
    return run
