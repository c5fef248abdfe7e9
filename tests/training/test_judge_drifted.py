"""A live judge whose grades differ from its baseline stops a training before the next segment."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rc1_lib.calibration.derived import JUDGE_BASELINE
from rc1_lib.calibration.judge_baseline import drift_verdict, record_baseline
from rc1_lib.checks import at_most
from rc1_lib.errors import RC1Error, TicketError
from rc1_lib.judge.maintenance import paid_in
from rc1_lib.judge.prompt import JUDGE_SPEC
from rc1_lib.records import GateResult
from rc1_lib.run import Run, open_run
from rc1_lib.training.episode_judge import check_grades
from rc1_lib.workspace.file_hashes import sha256_file
from tests.conftest import SMALL, copied_pool, without_baseline
from tests.judge_server import Behaviour, JudgeServer, running

USUAL = Behaviour(delay="zero")
N = 30
ASKED = "data/judge/episodes/checks/of_a_run.sqlite"
PRICES = "judge.prices={input: 1, output: 2}"
KEY = "key-of-the-double"


@pytest.fixture(scope="module")
def recorded(built: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the usual judge's baseline. Never write into it: use `run`."""
    root = copied_pool(built, tmp_path_factory.mktemp("recorded") / "workspace")
    with pytest.MonkeyPatch.context() as patch, running(USUAL) as server:
        patch.setenv("SCORER_API_KEY", KEY)
        run = open_run(profile="local", workspace=root, overrides=(*SMALL, *judge_at(server)))
        record_baseline(without_baseline(run))
    return root


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeServer]:
    monkeypatch.setenv("SCORER_API_KEY", KEY)
    with running(USUAL) as server:
        yield server


@pytest.fixture
def run(recorded: Path, server: JudgeServer, tmp_path: Path) -> Run:
    """A run whose judge has a baseline. The baseline depends on the judge, not on its address."""
    shutil.copytree(recorded, tmp_path / "workspace")
    return open_run(profile="local", workspace=tmp_path / "workspace", overrides=(*SMALL, *judge_at(server)))


def judge_at(server: JudgeServer) -> tuple[str, ...]:
    return (
        f"judge.baseline.n={N}", "judge.samples=2", "judge.provider=openai", f"judge.base_url={server.base_url}",
        "judge.model=rc1-test-double-1", "judge.limits.rps=1000",
        PRICES,
    )  # fmt: skip


def test_unchanged_judge_passes_every_paid_check(run: Run, server: JudgeServer) -> None:
    before = server.stats().answered
    assert "baseline" in check_grades(run, ASKED)
    assert server.stats().answered - before == N * run.config.judge.samples
    once = paid_in(run, ASKED).usd
    check_grades(run, ASKED)
    assert once > 0 and paid_in(run, ASKED).usd == pytest.approx(2 * once, rel=0.01), "each check is paid for"
    assert paid_in(run, "data/judge/episodes/checks/of_another.sqlite").usd == 0


@pytest.mark.parametrize(
    ("behaviour", "check"),
    [
        (replace(USUAL, shift=-0.1), "medians moved by is -0[.]"),
        pytest.param(
            replace(USUAL, shift=0.2, shifted="grounded"), "grounded: medians moved by is 0[.]", marks=pytest.mark.long
        ),
        (replace(USUAL, model="rc1-test-double-2"), "model versions is rc1-test-double-2"),
    ],
    ids=["stricter", "milder in one dimension", "another version"],
)
def test_changed_judge_stops_the_training(run: Run, server: JudgeServer, behaviour: Behaviour, check: str) -> None:
    server.behaviour = behaviour
    with pytest.raises(RC1Error, match=rf"baseline: .*{check}"):
        check_grades(run, ASKED)


def test_failed_check_is_repeated_once(run: Run, server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = GateResult("judge_drift", (at_most("moved", 1.0, 0.5, "it moved"),))
    verdicts = [failed]
    monkeypatch.setattr(
        "rc1_lib.training.episode_judge.drift_verdict",
        lambda run, where: verdicts.pop() if verdicts else drift_verdict(run, where),
    )
    before = server.stats().answered
    assert "baseline" in check_grades(run, ASKED)
    assert server.stats().answered - before == N * run.config.judge.samples


def test_missing_baseline_skips_the_check_without_a_ticket_and_fails_with_one(
    fresh_copy: Callable[..., Run], server: JudgeServer
) -> None:
    live = without_baseline(fresh_copy(*judge_at(server)))
    assert check_grades(live, ASKED) == ""
    with pytest.raises(TicketError, match=r"judge_baseline\.json was removed"):
        check_grades(replace(live, vouched={JUDGE_BASELINE.name: "0" * 64}), ASKED)
    record_baseline(live)
    pinned = {
        JUDGE_BASELINE.name: sha256_file(JUDGE_BASELINE.path(live)),
        JUDGE_SPEC.name: sha256_file(JUDGE_SPEC.path(live)),
    }
    check_grades(replace(live, vouched=pinned), ASKED)
    asked = server.stats().answered
    with pytest.raises(TicketError, match=r"judge_baseline\.json .*\(judge_baseline\).*SHA-256"):
        check_grades(replace(live, vouched={**pinned, JUDGE_BASELINE.name: "0" * 64}), ASKED)
    assert server.stats().answered == asked
