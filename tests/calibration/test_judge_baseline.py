"""The judge's baseline and the nightly drift gate, with a loopback judge that drifts, stays, fails or changes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rc1_lib.calibration import judge_baseline
from rc1_lib.calibration.derived import JUDGE_BASELINE
from rc1_lib.calibration.judge_baseline import ORDER, _moved, check_baseline, drift_verdict, record_baseline
from rc1_lib.config.judge import BASELINE_PATH
from rc1_lib.errors import RC1Error
from rc1_lib.evidence import Evidence
from rc1_lib.gates.gate_list import evaluate
from rc1_lib.gates.spec import NIGHTLY
from rc1_lib.judge.judge import open_store
from rc1_lib.records import Check, GateResult, Status
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import FileState, read_json, write_json
from tests.conftest import SMALL, copied_pool, without_baseline
from tests.judge_server import Behaviour, FaultKind, JudgeServer, running
from tests.training.weighed import weigh

N, K = 20, 3
ENOUGH = 15
"""Dialogues that must be scored: half of the shipped bound, for half as many dialogues."""
USUAL = Behaviour(latency_ms=(1.0, 0.1), noise_sd=0.05)


@pytest.fixture(scope="module", autouse=True)
def _few_dialogues_are_enough() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge_baseline, "MIN_DIALOGUES", ENOUGH)
        yield


@pytest.fixture(scope="module")
def server() -> Iterator[JudgeServer]:
    with running(USUAL) as one:
        yield one


@pytest.fixture(scope="module")
def recorded(built: Run, server: JudgeServer, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A workspace with a baseline of the live judge. Read-only: to write, take `night`."""
    root = copied_pool(built, tmp_path_factory.mktemp("recorded") / "workspace")
    run = live(root, server)
    without_baseline(run)
    server.behaviour = USUAL
    record_baseline(run)
    return run


@pytest.fixture
def night(recorded: Run, server: JudgeServer, tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """`night("a.b=c")`: a copy of the workspace with a baseline; afterwards the judge is reset."""

    def copied(*overrides: str) -> Run:
        root = tmp_path / "workspace"
        shutil.copytree(recorded.workspace.root, root)
        return live(root, server, *overrides)

    yield copied
    server.behaviour = USUAL


def live(root: Path, server: JudgeServer, *overrides: str) -> Run:
    return open_run(
        profile="local", workspace=root,
        overrides=(
            *SMALL, f"judge.baseline.n={N}", "judge.provider=openai",
            f"judge.base_url={server.base_url}",
            "judge.model=rc1-test-double-1", "judge.limits.rps=1000", *overrides,
        ),
    )  # fmt: skip


def moved_away(run: Run) -> None:
    """Do what the documentation says for a new baseline."""
    JUDGE_BASELINE.path(run).unlink(missing_ok=True)
    run.workspace.checksum_path(BASELINE_PATH).unlink()


def moved(result: GateResult) -> set[str]:
    """The dimensions whose checks failed."""
    return {check.name.partition(":")[0] for check in result.failures}


def check_of(result: GateResult, name: str) -> Check:
    return next(check for check in result.checks if check.name == name)


def test_unchanged_judge_passes_and_is_called_each_time(night: Callable[..., Run], server: JudgeServer) -> None:
    run = night()
    with open_store(run) as store:
        kept = store.log().height
    for _ in range(2):
        before = server.stats().answered
        result = drift_verdict(run)
        assert result.failures == ()
        assert server.stats().answered - before == N * K, "no stored reply is used"
    with open_store(run) as store:
        assert store.log().height == kept, "the run's store is unchanged"


@pytest.mark.parametrize(("behaviour", "dimension"), [
    (replace(USUAL, shift=0.1), "overall"),
    pytest.param(replace(USUAL, shift=-0.1, model="rc1-test-double-2"), "overall", marks=pytest.mark.long),
    (replace(USUAL, shift=0.15, shifted="grounded"), "grounded"),
])  # fmt: skip
def test_drifted_judge_fails_under_any_version_name(
    behaviour: Behaviour, dimension: str, night: Callable[..., Run], server: JudgeServer
) -> None:
    run = night()
    server.behaviour = behaviour
    result = drift_verdict(run)
    assert result.status is Status.FAILED
    assert dimension in moved(result)
    if behaviour.shifted:
        assert moved(result) <= {"grounded", "overall"}
    version = check_of(result, "model versions")
    assert (version.value, version.passed) == (behaviour.model, behaviour.model == USUAL.model)
    assert "calibrate again" in result.failures[0].advice


def test_a_judge_that_gives_its_grades_to_other_dialogues_fails_though_their_mean_stays(
    night: Callable[..., Run], server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = night()
    server.behaviour = replace(USUAL, seed=3)  # of these no mean moves by half of the bound
    assert "differ by 0.0" in str(check_of(drift_verdict(run), ORDER).value)  # the double's grades are too much alike
    monkeypatch.setattr(judge_baseline, "_LEAST_SPREAD", 0.01)
    assert [check.name for check in drift_verdict(run).failures] == [ORDER]
    server.behaviour = USUAL
    assert drift_verdict(run).failures == ()


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("flips", [0.0, 0.15])
def test_order_survives_noise_within_a_night_and_between_nights(samples: int, flips: float) -> None:
    """Up to the most noise that `judge_stability` allows, or a seventh of the grades turned over, in 60 dialogues."""
    rng, names = np.random.default_rng(20250820), [str(number) for number in range(7)]
    for _ in range(50):
        grades = (rng.uniform(size=(60, 1, 7)) < rng.uniform(size=(60, 1, 1))).astype(float)
        night = np.abs(grades - (rng.uniform(size=grades.shape) < flips))
        sd = 0.08**0.5 * (samples > 1) * (flips == 0)
        then, now = (of + rng.normal(0, sd, (60, samples, 7)) for of in (grades, night))
        kept = _moved(list(zip(then, now, strict=True)), names)
        assert kept.spread >= 0.1 and kept.order >= 0.5
        assert _moved(list(zip(then, rng.permutation(now), strict=True)), names).order < 0.5


def test_another_model_version_fails_even_with_equal_grades(night: Callable[..., Run], server: JudgeServer) -> None:
    run = night()
    server.behaviour = replace(USUAL, model="rc1-test-double-2")
    (version,) = drift_verdict(run).failures
    assert (version.name, version.threshold, version.value) == ("model versions", USUAL.model, "rc1-test-double-2")


def test_missing_scores_do_not_count_as_zero_and_too_many_fail(night: Callable[..., Run], server: JudgeServer) -> None:
    run = night()
    server.behaviour = replace(USUAL, faults={FaultKind.REFUSAL: 0.04})
    result = drift_verdict(run)
    scored = check_of(result, "dialogues compared").value
    assert isinstance(scored, int) and ENOUGH <= scored < N
    assert not moved(result) - {"scored again, share"}, "a missing score does not lower the medians"
    server.behaviour = replace(USUAL, faults={FaultKind.REFUSAL: 0.5})
    result = drift_verdict(run)
    assert {"scored again, share", "dialogues compared"} <= {check.name for check in result.failures}
    assert "declined to grade" in check_of(result, "scored again, share").advice


def test_another_judge_or_other_instructions_need_a_new_baseline(
    night: Callable[..., Run], server: JudgeServer
) -> None:
    run = night()
    first = JUDGE_BASELINE.path(run).read_bytes()
    other = live(run.workspace.root, server, "judge.model=rc1-test-double-2")
    assert JUDGE_BASELINE.state(other) is FileState.STALE
    for rejected in (lambda: record_baseline(other), lambda: drift_verdict(other)):
        with pytest.raises(RC1Error, match=r"rc1-test-double-1' .*rc1-test-double-2' "):
            rejected()
    assert JUDGE_BASELINE.path(run).read_bytes() == first
    spec = run.workspace.path("configs/judge/v1.yaml")
    spec.parent.mkdir(parents=True, exist_ok=True)
    shipped = Path(__file__).parents[2] / "configs/judge/v1.yaml"
    spec.write_text(shipped.read_text(encoding="utf-8").replace("You grade", "You kindly grade", 1) + "\n# other\n")
    assert JUDGE_BASELINE.state(run) is FileState.STALE
    spec.unlink()

    moved_away(other)
    record_baseline(other)
    assert check_baseline(other) is FileState.FRESH
    assert drift_verdict(other).failures == ()


def test_new_baseline_without_a_new_calibration_does_not_hide_a_drift(
    night: Callable[..., Run], server: JudgeServer
) -> None:
    run = night()
    weigh(run, dict(run.config.reward.old_weights), [USUAL.model])
    server.behaviour = replace(USUAL, shift=0.15)
    moved_away(run)
    record_baseline(run)
    assert "overall" in moved(drift_verdict(run)), "it has the grades that the weights rest on"
    manifest = run.workspace.manifest_path(run.config.weights)
    write_json(manifest, read_json(manifest) | {"written": "2026-01-01T00:00:00+00:00"})
    with open_store(run) as store:
        store.invalidate("v1")
    moved_away(run)
    for _ in range(2):  # the first one asks, the second finds the replies in the store
        with pytest.raises(RC1Error, match=r"weights\.json .*rc1 calibrate --rebuild"):
            record_baseline(run)
    weights = run.workspace.path(run.config.weights)
    weights.write_bytes(weights.read_bytes() + b"\n")
    with pytest.raises(RC1Error, match=r"weights\.json: was altered .*rc1 calibrate --rebuild"):
        record_baseline(run)  # the edited file would be restored, with grades from before the drift
    weigh(run, dict(run.config.reward.old_weights), [USUAL.model])
    record_baseline(run)
    assert drift_verdict(run).failures == ()


def test_edited_or_missing_baseline_is_named(night: Callable[..., Run]) -> None:
    run = night()
    path = JUDGE_BASELINE.path(run)
    body = path.read_text()
    path.write_text(body.replace('"recorded": "2', '"recorded": "1', 1))
    for rejected in (record_baseline, drift_verdict):
        with pytest.raises(RC1Error, match=r"judge_baseline\.json: .*altered.*judge_baseline\.sha256 away"):
            rejected(run)
    path.unlink()
    with pytest.raises(RC1Error, match=r"judge_baseline\.json: .*missing.*judge_baseline\.sha256 away"):
        record_baseline(run)
    moved_away(run)
    record_baseline(run)
    assert check_baseline(run) is FileState.FRESH


def test_missing_baseline_is_an_error_of_the_drift_gate(fresh_copy: Callable[..., Run]) -> None:
    run = fresh_copy()
    JUDGE_BASELINE.path(run).unlink()
    result = evaluate("judge_drift", Evidence(run), NIGHTLY)
    assert result.status is Status.ERROR
    assert "no baseline" in result.error or "file not found" in result.error
