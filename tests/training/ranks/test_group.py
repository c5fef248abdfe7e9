"""Groups of real processes: shared work, lost and silent workers, and reuse."""

from __future__ import annotations

import math
import os
import random
import select
import subprocess
import sys
from datetime import timedelta

import psutil
import pytest
import torch

from rc1_lib.training.ranks import group as groups
from rc1_lib.training.ranks.group import GO_ON, Group, group_of, pack, unpack
from rc1_lib.training.resource_errors import (
    LostError,
    shortage,
)
from tests.training.ranks import adders
from tests.training.ranks.adders import follow, run_in_all

CPU = torch.device("cpu")


@pytest.fixture
def group() -> Group:
    """A worker next to this process; the tests share it as long as it is whole."""
    return group_of(2, follow)


def test_values_arrive_as_they_were_sent() -> None:
    tensors = [
        torch.tensor([[1.5, math.nan], [-0.0, math.inf]], dtype=torch.bfloat16), torch.arange(6).reshape(2, 3).T,
        torch.tensor(3.0), torch.empty(0, 4), torch.tensor([True, False]), torch.rand(3, requires_grad=True),
    ]  # fmt: skip
    sent = {"state": {0: tensors, 7: [None, True, 0.1, "é\ud800", -3]}, "betas": (0.9, 0.999)}
    found = unpack(pack(sent, CPU))
    assert found["state"][7] == sent["state"][7] and found["betas"] == [0.9, 0.999]
    for one, other in zip(tensors, found["state"][0], strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape) and not other.requires_grad
        assert torch.equal(one.detach().nan_to_num(9.0), other.nan_to_num(9.0))


def test_content_that_names_anything_but_a_type_of_tensors_is_rejected() -> None:
    content = pack(torch.zeros(1), CPU)
    forged = bytes(content.numpy()).replace(b'"float32"', b'"load"   ')
    with pytest.raises(AssertionError, match="'load'"):
        unpack(torch.frombuffer(bytearray(forged), dtype=torch.uint8))


def test_sum_has_the_same_bits_for_any_number_of_processes(group: Group) -> None:
    numbers = [random.Random(8).uniform(-1, 1) * 10**power for power in range(12) for _ in range(5)]
    assert run_in_all(group, adders.add, numbers) == adders.add(None, numbers)


def test_group_is_reused_and_listens_on_loopback_alone(group: Group) -> None:
    first, second = (run_in_all(group_of(2, follow), adders.process) for _ in range(2))
    assert first == second and first[0] == os.getpid() != first[1]
    heard = [
        one.laddr.ip
        for process in first
        for one in psutil.Process(process).net_connections()
        if one.status == psutil.CONN_LISTEN
    ]
    assert heard and set(heard) == {"127.0.0.1"}


def test_lost_worker_is_reported_and_the_next_group_is_new(group: Group) -> None:
    with pytest.raises(LostError, match=f"^process 2 of 2 was killed by signal 9; {GO_ON}$") as found:
        run_in_all(group, adders.die)
    assert shortage(found.value) == "" and not group.whole
    with pytest.raises(LostError, match="start the command again"):
        run_in_all(group, adders.process)
    assert group_of(2, follow) is not group


def test_stopped_worker_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    groups._close()  # of another test
    monkeypatch.setattr(groups, "PATIENCE", timedelta(seconds=12))
    waiting = group_of(2, follow)
    with pytest.raises(LostError, match=rf"silent for 0\.2 minutes, .*stopped.*{GO_ON}$"):
        run_in_all(waiting, adders.stop)
    assert not waiting.whole and waiting._workers is not None
    assert [process.exitcode for process in waiting._workers.processes] == [-9]


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
