"""Fixtures for all folders: a small real pool, built once, and runs in separate workspaces."""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from rc1_lib.calibration.judge_baseline import record_baseline
from rc1_lib.calibration.stages import STAGES, evaluate_here, run_stages
from rc1_lib.config.judge import BASELINE_PATH
from rc1_lib.difficulty.steps import write_balanced, write_metrics
from rc1_lib.evidence import Evidence
from rc1_lib.gates.gate_list import evaluate, gates_of_round
from rc1_lib.pool.seed import build_seed
from rc1_lib.records import GateResult
from rc1_lib.run import ENVIRONMENT, Run, open_run
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests import forks, pictures
from tests.groups import ByGroup, turn_of
from tests.once import copy_of

Verdicts = dict[int, list[GateResult]]
"""Round -> the verdicts of its gates."""

SHARED_DATA = PROJECT_ROOT.parent / "shared" / "data"

# Free disk space is a property of the machine; all other thresholds are the shipped ones. The seed is one whose 120
# shadow rows are ordered alike by the old score and the new reward: with so few of them, not every seed's are.
SMALL = (
    "pool.n=1200", "pool.seed=3", "pool.workers=1", "shadow.n=120", "calibration.n=300", "ablation.takes=3",
    "gates.resources.min_free_gb=0", "gates.git.require_commit=false",
    "gates.reward_hacking.prompts=60", "gates.shared.resamples=200", "calibration.boot=40",
)  # fmt: skip


# How long an example takes depends on the machine, and a suite that passed should pass again.
settings.register_profile(
    "rc1", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rc1")

_STATE = tempfile.TemporaryDirectory(prefix="rc1_state_")
os.environ["XDG_STATE_HOME"] = _STATE.name  # before any process is started: databases and passwords of servers

gc.disable()  # until everything is imported and collected, since none of that becomes garbage


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exempt all collected objects from garbage collection, which then runs less often."""
    if session.config.getoption("markexpr") != "long":
        pictures.leave_empty()
    gc.freeze()
    forks.start_forking()
    gc.set_threshold(100_000, 20, 50)
    gc.enable()


def pytest_sessionfinish() -> None:
    """End the process that forks for tests."""
    forks.stop_forking()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest groups first."""
    items.sort(key=lambda item: turn_of(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByGroup:
    """Give each worker whole groups."""
    return ByGroup(config, log)


@pytest.fixture(scope="session", autouse=True)
def _empty_working_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests run in an empty folder and must not write to it: a test gives absolute paths."""
    folder, before = tmp_path_factory.mktemp("working_folder"), Path.cwd()
    os.chdir(folder)
    yield
    os.chdir(before)
    assert list(folder.iterdir()) == [], "a test wrote into the folder that it was started in"


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def drawn() -> Iterator[None]:
    """Draw pictures in this module; in others they are empty, unless `make test-long` runs."""
    with pictures.drawn():
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real rows; skips the test if it does not exist."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the real rows are missing: no folder {SHARED_DATA.name} next to the project")
    return SHARED_DATA


def _build(root: Path) -> None:
    run = open_run(profile="local", workspace=root, overrides=SMALL)
    build_seed(run)
    write_metrics(run)
    write_balanced(run)
    assert [outcome.gate.failures for outcome in run_stages(run, evaluate_here)] == [()] * len(STAGES)
    record_baseline(run)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A small synthetic pool, calibrated and ready for the gates. Read only: a test that writes takes `fresh_copy`."""
    return open_run(profile="local", workspace=copy_of("built", _build, tmp_path_factory), overrides=SMALL)


def both_rounds(evidence: Evidence) -> Verdicts:
    """Evaluate the gates of both rounds; the second takes over what the first found in the same bytes, as in a run."""
    first = {spec.name: evaluate(spec.name, evidence, 1) for spec in gates_of_round(1)}
    second = [evaluate(spec.name, evidence, 2, first.get(spec.name)) for spec in gates_of_round(2)]
    return {1: list(first.values()), 2: second}


@pytest.fixture(scope="session")
def verdicts(built: Run, tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    """Both rounds' verdicts on the small pool; they are valid in every copy of its workspace."""

    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / "verdicts").write_bytes(pickle.dumps(both_rounds(Evidence(built))))

    found: Verdicts = pickle.loads((copy_of("verdicts", make, tmp_path_factory) / "verdicts").read_bytes())
    return found


@pytest.fixture(scope="session")
def opened(built: Run, verdicts: Verdicts, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A workspace with a ticket and a tiny base, before training. Read only: a test that writes takes a copy."""
    from tests.ticketed import TINY, copy_with_base, ticketed

    def make(root: Path) -> None:
        copy_with_base(built, root)
        ticketed(root, built, verdicts)

    root = copy_of("opened", make, tmp_path_factory)
    return open_run(profile="local", workspace=root, overrides=(*built.overrides, *TINY))


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Prefect server for the flows of this worker's tests.

    Tests that use it are in one group (`tests/groups.py`), so that only one worker starts a server.
    """
    from tests.prefect_server import give_tables, server_of_tests

    with server_of_tests(give_tables(tmp_path_factory.mktemp("prefect_storage"), tmp_path_factory)):
        yield


@pytest.fixture(scope="session")
def evidence(built: Run) -> Evidence:
    """The evidence of the small pool."""
    return Evidence(built)


def copied_pool(built: Run, root: Path) -> Path:
    """Copy the small pool's workspace without the replies and the log that tests may have added to it."""
    return shutil.copytree(built.workspace.root, root, ignore=shutil.ignore_patterns("scores.sqlite*"))


def without_baseline(run: Run) -> Run:
    """Move the baseline of another judge away, as the documentation says; the small pool has the rubric's."""
    for path in (run.workspace.path(BASELINE_PATH), run.workspace.checksum_path(BASELINE_PATH)):
        path.unlink()
    return run


@pytest.fixture
def fresh_copy(built: Run, tmp_path: Path) -> Callable[..., Run]:
    """Makes a separate workspace with the small pool: `fresh_copy("pool.n=7", ...)`."""

    def make(*overrides: str) -> Run:
        root = copied_pool(built, tmp_path / "workspace")
        return open_run(profile="local", workspace=root, overrides=(*SMALL, *overrides))

    return make
