"""Real processes that share work, lose one another, and are taken again."""

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
from tests.training.ranks.adders import Adder, begun, do
from tests.training.ranks.forked import fork_workers


@pytest.fixture
def started() -> Iterator[StartedGroup]:
    """Two workers, each from an interpreter of its own."""
    made = StartedGroup(3)
    yield made
    made.close()


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch, forks: Forks) -> Iterator[StartedGroup]:
    """Two workers that were forked, for tests of what they do once they are there."""
    fork_workers(monkeypatch, forks)
    made = StartedGroup(3)
    yield made
    made.close()


def test_any_number_of_processes_comes_to_the_same_bits(group: StartedGroup) -> None:
    numbers = [random.Random(8).uniform(-1, 1) * 10**power for power in range(12) for _ in range(5)]
    alone = Adder(group.link, 4)
    alone.shards = type(alone.shards)(4)
    assert do(group, begun(group, 4).add, numbers) == alone.add(numbers)


def test_each_shard_is_worked_on_by_a_process_of_its_own(group: StartedGroup) -> None:
    found = do(group, begun(group, 3).process)
    assert found[0] == os.getpid() and len(set(found)) == 3


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("die", rf"^process [23] of 3 .*signal 9; {GO_ON}$"),
        ("refuse", r"^process 2 of 3: base: is not there; put it there$"),
    ],
)
def test_a_process_that_is_lost_or_refuses_is_a_sentence(group: StartedGroup, name: str, sentence: str) -> None:
    adder = begun(group, 3)
    with pytest.raises(LostError, match=sentence) as found:
        do(group, getattr(adder, name))
    assert isinstance(found.value, RC1Error)
    assert not group.whole
    with pytest.raises(LostError, match=StartedGroup.to_go_on):
        do(group, adder.process)


def test_a_process_that_ends_by_itself_is_quoted(started: StartedGroup) -> None:
    said = r"process [23] of 3 ended with exit code 7 \(out of patience\); .*run the same command again"
    with pytest.raises(LostError, match=said):
        do(started, begun(started, 3).leave)
    assert not started.whole


def test_a_process_that_fails_shows_its_own_traceback(group: StartedGroup) -> None:
    with pytest.raises(WorkerError, match=r"^process 2 of 3: (.|\n)*KeyError: 'lost'") as found:
        do(group, begun(group, 3).fail)
    assert not isinstance(found.value, RC1Error)


@pytest.mark.parametrize(
    ("name", "what", "told"),
    [("fill_memory", MEMORY, "can't allocate memory"), ("fill_disk", DISK, "File too large")],
)
def test_what_a_worker_ran_out_of_is_named_as_that(group: StartedGroup, name: str, what: str, told: str) -> None:
    with (
        pytest.raises(BreakdownError, match=rf"^{what} \(process 2 of 3: [^\n]*{told}[^\n]*\): .*here") as found,
        naming_breakdowns("What was done is here", WHILE_LEARNING),
    ):
        do(group, getattr(begun(group, 3), name))
    assert isinstance(found.value.__cause__, WorkerError) and "Traceback" in str(found.value.__cause__)


@pytest.mark.parametrize(("killed", "what"), [("oom_kill 8", MEMORY), ("oom_kill 7", "")])
def test_a_worker_that_the_kernel_ended_for_want_of_memory_is_known_by_the_kernels_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forks: Forks, killed: str, what: str
) -> None:
    fork_workers(monkeypatch, forks)
    counted = tmp_path / "vmstat"
    counted.write_text("nr_free_pages 12\noom_kill 7\n")
    monkeypatch.setattr("rc1_lib.training.memory._VMSTAT", counted)
    group = StartedGroup(2)
    adder = begun(group, 2)
    counted.write_text(f"nr_free_pages 12\n{killed}\n")
    with pytest.raises(LostError, match=r"^process 2 of 2 .*signal 9\b") as found:
        do(group, adder.die)
    assert shortage(found.value) == what
    assert (KILLED in str(found.value)) == bool(what)


def test_where_the_kernel_does_not_say_whom_it_has_ended_nobody_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert oom_kills() >= 0
    (tmp_path / "vmstat").write_text("nr_free_pages 12\n")
    monkeypatch.setattr("rc1_lib.training.memory._VMSTAT", tmp_path / "vmstat")
    monkeypatch.setattr("rc1_lib.training.memory._EVENTS", tmp_path / "nowhere")
    assert oom_kills() == 0


def test_ones_own_error_ends_the_workers_and_is_ones_own(group: StartedGroup) -> None:
    adder = begun(group, 3)
    with pytest.raises(ZeroDivisionError), group.calling(adder.process):
        print(1 / 0)
    assert not group.whole


def test_a_worker_drops_its_engine_before_it_makes_the_next(group: StartedGroup) -> None:
    begun(group, 3)
    found = do(group, begun(group, 3).others)
    assert found[1:] == [0, 0]


def test_a_group_that_was_released_is_taken_again_unless_one_of_it_died(
    monkeypatch: pytest.MonkeyPatch, forks: Forks
) -> None:
    fork_workers(monkeypatch, forks)
    group = StartedGroup(2)
    first = do(group, begun(group, 2).process)
    group.release()
    again = StartedGroup.take(2)
    assert do(again, begun(again, 2).process) == first
    os.kill(first[1], 9)
    assert again._processes[0].wait() == -9
    again.release()
    other = StartedGroup.take(2)
    try:
        second = do(other, begun(other, 2).process)
        assert second[1] != first[1]
    finally:
        other.close()
        again.close()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for processes of others, which only Linux can")
def test_workers_end_when_the_first_process_is_killed() -> None:
    # The tests are found as they are here: by what pytest has put before the path.
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", adders.__name__]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=path) as leader:
        assert leader.stdout is not None
        _, *workers = map(int, leader.stdout.readline().split())
        assert len(workers) == 2
        open_ends = [os.pidfd_open(worker) for worker in workers]
        leader.kill()
    try:
        for end in open_ends:
            assert select.select([end], [], [], 120)[0], "a worker outlives the process that it works for"
    finally:
        for end in open_ends:
            os.close(end)
