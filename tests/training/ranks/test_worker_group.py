"""Groups of real processes: shared work, lost workers, and reuse."""

from __future__ import annotations

import os
import random
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.training.memory import oom_kills
from rc1_lib.training.ranks.group import GO_ON, KILLED, LostError, WorkerError
from rc1_lib.training.ranks.processes import StartedGroup
from rc1_lib.training.resource_errors import DISK, MEMORY, WHILE_LEARNING, BreakdownError, naming_breakdowns, shortage
from tests.forks import Forks
from tests.training.ranks import adders
from tests.training.ranks.adders import Adder, adder_of, run_in_all
from tests.training.ranks.forked import fork_workers


@pytest.fixture
def started() -> Iterator[StartedGroup]:
    """Two workers in new interpreters."""
    made = StartedGroup(3)
    yield made
    made.close()


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch, forks: Forks) -> Iterator[StartedGroup]:
    """Two forked workers, for tests that are not about starting them."""
    fork_workers(monkeypatch, forks)
    made = StartedGroup(3)
    yield made
    made.close()


def test_sum_has_the_same_bits_for_any_number_of_processes(group: StartedGroup) -> None:
    numbers = [random.Random(8).uniform(-1, 1) * 10**power for power in range(12) for _ in range(5)]
    alone = Adder(group.link, 4)
    alone.shards = type(alone.shards)(4)
    assert run_in_all(group, adder_of(group, 4).add, numbers) == alone.add(numbers)


def test_each_shard_is_computed_by_another_process(group: StartedGroup) -> None:
    found = run_in_all(group, adder_of(group, 3).process)
    assert found[0] == os.getpid() and len(set(found)) == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("die", rf"^process [23] of 3 .*signal 9; {GO_ON}$"),
        ("refuse", r"^process 2 of 3: base: not found$"),
    ],
)
def test_lost_or_failed_worker_is_reported(group: StartedGroup, name: str, message: str) -> None:
    adder = adder_of(group, 3)
    with pytest.raises(LostError, match=message) as found:
        run_in_all(group, getattr(adder, name))
    assert isinstance(found.value, RC1Error)
    assert not group.whole
    with pytest.raises(LostError, match=StartedGroup.to_go_on):
        run_in_all(group, adder.process)


def test_exit_code_and_output_of_an_ended_worker_are_quoted(started: StartedGroup) -> None:
    with pytest.raises(LostError, match=r"process [23] of 3 .* 7 \(out of patience\); "):
        run_in_all(started, adder_of(started, 3).leave)
    assert not started.whole


def test_traceback_of_a_failed_worker_is_shown(group: StartedGroup) -> None:
    with pytest.raises(WorkerError, match=r"^process 2 of 3: (.|\n)*KeyError: 'lost'") as found:
        run_in_all(group, adder_of(group, 3).fail)
    assert not isinstance(found.value, RC1Error)


@pytest.mark.parametrize(
    ("name", "lacking", "cause"),
    [("fill_memory", MEMORY, "can't allocate memory"), ("fill_disk", DISK, "File too large")],
)
def test_shortage_of_a_worker_is_named(group: StartedGroup, name: str, lacking: str, cause: str) -> None:
    with (
        pytest.raises(BreakdownError, match=rf"^{lacking} \(process 2 of 3: [^\n]*{cause}[^\n]*\): .*here") as found,
        naming_breakdowns("What was done is here", WHILE_LEARNING),
    ):
        run_in_all(group, getattr(adder_of(group, 3), name))
    assert isinstance(found.value.__cause__, WorkerError) and "Traceback" in str(found.value.__cause__)


@pytest.mark.parametrize(("line", "lacking"), [("oom_kill 8", MEMORY), ("oom_kill 7", "")])
def test_worker_killed_for_lack_of_memory_is_known_by_the_kernels_oom_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forks: Forks, line: str, lacking: str
) -> None:
    fork_workers(monkeypatch, forks)
    vmstat = tmp_path / "vmstat"
    vmstat.write_text("nr_free_pages 12\noom_kill 7\n")
    monkeypatch.setattr("rc1_lib.training.memory._VMSTAT", vmstat)
    group = StartedGroup(2)
    adder = adder_of(group, 2)
    vmstat.write_text(f"nr_free_pages 12\n{line}\n")
    with pytest.raises(LostError, match=r"^process 2 of 2 .*signal 9\b") as found:
        run_in_all(group, adder.die)
    assert shortage(found.value) == lacking
    assert (KILLED in str(found.value)) == bool(lacking)


def test_oom_count_is_0_if_the_kernel_does_not_report_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert oom_kills() >= 0
    (tmp_path / "vmstat").write_text("nr_free_pages 12\n")
    monkeypatch.setattr("rc1_lib.training.memory._VMSTAT", tmp_path / "vmstat")
    monkeypatch.setattr("rc1_lib.training.memory._EVENTS", tmp_path / "nowhere")
    assert oom_kills() == 0


def test_error_of_the_first_process_stops_the_workers_and_is_raised(group: StartedGroup) -> None:
    adder = adder_of(group, 3)
    with pytest.raises(ZeroDivisionError), group.calling(adder.process):
        print(1 / 0)
    assert not group.whole


def test_worker_frees_its_engine_before_it_makes_the_next(group: StartedGroup) -> None:
    adder_of(group, 3)
    found = run_in_all(group, adder_of(group, 3).others)
    assert found[1:] == [0, 0]


def test_released_group_is_reused_unless_a_worker_died(monkeypatch: pytest.MonkeyPatch, forks: Forks) -> None:
    fork_workers(monkeypatch, forks)
    group = StartedGroup(2)
    first = run_in_all(group, adder_of(group, 2).process)
    group.release()
    again = StartedGroup.take(2)
    assert run_in_all(again, adder_of(again, 2).process) == first
    os.kill(first[1], 9)
    assert again._processes[0].wait() == -9
    again.release()
    other = StartedGroup.take(2)
    try:
        second = run_in_all(other, adder_of(other, 2).process)
        assert second[1] != first[1]
    finally:
        other.close()
        again.close()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for processes of others, which only Linux can")
def test_workers_end_when_the_first_process_is_killed() -> None:
    # The child finds the tests by pytest's path entries.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", adders.__name__]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as leader:
        assert leader.stdout is not None
        _, *workers = map(int, leader.stdout.readline().split())
        assert len(workers) == 2
        pidfds = [os.pidfd_open(worker) for worker in workers]
        leader.kill()
    try:
        for end in pidfds:
            assert select.select([end], [], [], 120)[0], "a worker outlived the first process"
    finally:
        for end in pidfds:
            os.close(end)
