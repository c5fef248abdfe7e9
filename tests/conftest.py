"""Fixtures that every folder shares: a small real pool, built once, and runs in folders of their own."""

from __future__ import annotations

import gc
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from rc1_lib.calibration.judge_baseline import record_baseline
from rc1_lib.calibration.stages import STAGES, evaluate_here, run_stages
from rc1_lib.difficulty.steps import write_balanced, write_metrics
from rc1_lib.evidence import Evidence
from rc1_lib.pool.seed import build_seed
from rc1_lib.preflight.gate_list import evaluate, gates_of_round
from rc1_lib.records import GateResult
from rc1_lib.run import ENVIRONMENT, Run, open_run
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests import forks, own_workspace, pictures
from tests.groups import ByGroup, turn_of
from tests.once import copy_of

Verdicts = dict[int, list[GateResult]]
"""Round -> the verdicts of its gates."""

SHARED_DATA = PROJECT_ROOT.parent / "shared" / "data"

# Free disk is the machine's business, not the code's; everything else keeps the shipped thresholds.
SMALL = (
    "pool.n=1200", "pool.workers=1", "shadow.n=120", "calibration.n=300", "ablation.takes=3",
    "gates.resources.min_free_gb=0", "gates.git.require_commit=false",
    "gates.reward_hacking.prompts=60", "gates.shared.resamples=200", "calibration.boot=40",
)  # fmt: skip


# How long an example takes is the machine's business, and a suite that is green is to be green again.
settings.register_profile("rc1", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rc1")

gc.disable()  # until everything is imported and collected: nothing of that is garbage


def pytest_collection_finish(session: pytest.Session) -> None:
    """What was collected stays for good: the collector need not look at it, and looks more seldom at the rest."""
    if session.config.getoption("markexpr") != "long":
        pictures.leave_empty()
    gc.freeze()
    forks.be_ready()
    gc.set_threshold(100_000, 20, 50)
    gc.enable()


def pytest_sessionfinish() -> None:
    """Nothing that was started is left behind."""
    forks.no_more()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest groups first."""
    items.sort(key=lambda item: turn_of(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByGroup:
    """Where several workers run, each gets whole groups."""
    return ByGroup(config, log)


@pytest.fixture(scope="session", autouse=True)
def _elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests run in an empty folder, and nobody writes into it: what a test means it names in full."""
    folder, before = tmp_path_factory.mktemp("elsewhere"), Path.cwd()
    os.chdir(folder)
    yield
    os.chdir(before)
    assert list(folder.iterdir()) == [], "a test wrote into the folder that it was started in"


@pytest.fixture(scope="session", autouse=True)
def _nothing_of_the_projects_own_workspace() -> Iterator[None]:
    """What `make run` leaves in the project is the user's, and what is shipped is everybody's: no test alters it."""
    before = own_workspace.everything()
    yield
    assert own_workspace.everything() == before, "a test, or a command that ran meanwhile, altered the project's files"


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def drawn() -> Iterator[None]:
    """Pictures are drawn for this module; elsewhere they are empty, unless `make test-long` runs."""
    with pictures.drawn():
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real rows, or a skip that says so."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the real rows are not here: no folder {SHARED_DATA.name} beside the project")
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
    """A small embedded pool with everything before the gates done. Never write into it: take `fresh_copy`."""
    return open_run(profile="local", workspace=copy_of("built", _build, tmp_path_factory), overrides=SMALL)


@pytest.fixture(scope="session")
def verdicts(built: Run, tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    """Both rounds' verdicts on the small pool; its files are the same in every copy of the workspace."""

    def make(folder: Path) -> None:
        evidence = Evidence(built)
        found = {
            number: [evaluate(spec.name, evidence, number) for spec in gates_of_round(number)] for number in (1, 2)
        }
        folder.mkdir()
        (folder / "verdicts").write_bytes(pickle.dumps(found))

    found: Verdicts = pickle.loads((copy_of("verdicts", make, tmp_path_factory) / "verdicts").read_bytes())
    return found


@pytest.fixture(scope="session")
def opened(built: Run, verdicts: Verdicts, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A workspace with a ticket, a tiny base and nothing trained. Never write into it: take a copy."""
    from tests.ticketed import TINY, copy_with_base, ticketed

    def make(root: Path) -> None:
        copy_with_base(built, root)
        ticketed(root, built, verdicts)

    root = copy_of("opened", make, tmp_path_factory)
    return open_run(profile="local", workspace=root, overrides=(*built.overrides, *TINY))


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Prefect server of this worker, to which every flow of its tests goes.

    What uses it is of one group (`tests/groups.py`), so that one worker has it and no other one pays for a second.
    """
    from tests.prefect_server import server_of_tests

    with server_of_tests(tmp_path_factory.mktemp("prefect_storage")):
        yield


@pytest.fixture(scope="session")
def evidence(built: Run) -> Evidence:
    """The evidence of the small pool."""
    return Evidence(built)


def copied_pool(built: Run, root: Path) -> Path:
    """The small pool's workspace once more, without the replies and the log that tests on it may have left."""
    return shutil.copytree(built.workspace.root, root, ignore=shutil.ignore_patterns("scores.sqlite*"))


@pytest.fixture
def fresh_copy(built: Run, tmp_path: Path) -> Callable[..., Run]:
    """Makes a workspace of the test's own with the small pool in it: `fresh_copy("pool.n=7", ...)`."""

    def make(*overrides: str) -> Run:
        root = copied_pool(built, tmp_path / "workspace")
        return open_run(profile="local", workspace=root, overrides=(*SMALL, *overrides))

    return make
