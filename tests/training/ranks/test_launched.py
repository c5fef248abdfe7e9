"""Processes of `accelerate launch` or `torchrun`: they end with the bytes of one process, and failures are reported."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import torch
from prefect.utilities.engine import capture_sigterm
from torch.distributed import HashStore

from rc1_lib.cli import _leads
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.ranks import launched
from rc1_lib.training.ranks.group import GO_ON, KILLED, LostError
from rc1_lib.training.ranks.launched import Launch, LaunchedGroup, forget_launch, gpu_of, join, launch_of
from rc1_lib.training.ranks.processes import processes_of
from rc1_lib.training.resource_errors import MEMORY, shortage
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.forks import Forks
from tests.training.ranks import launches
from tests.training.ranks.adders import Adder
from tests.training.ranks.launches import SHARDS, started
from tests.training.test_ppo_run import go

Tiny = Callable[..., Run]
LOSS_TOLERANCE = 1e-6
"""The largest difference of a loss between several processes and one."""
ADDRESS = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


def losses(root: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (root / "reports/metrics.jsonl").read_text().splitlines()]


def test_two_launched_processes_have_the_losses_of_one_unsharded_process(tiny: Tiny, forks: Forks) -> None:
    """Another number of shards changes only the order of sums, so that only rounding may differ."""
    one, two = (tiny(*alone, name=name) for name, alone in (("one", ("training.shards=1",)), ("two", (SHARDS,))))
    both = started(forks, two.workspace.root, 2)
    go(one, launches.LAST)
    assert [process.wait() for process in both] == [0, 0], [process.read_output()[-2000:] for process in both]
    of_one, of_two = losses(one.workspace.root), losses(two.workspace.root)
    assert len(of_one) == launches.LAST and of_two == pytest.approx(of_one, rel=0, abs=LOSS_TOLERANCE)
    assert len(set(of_one)) == launches.LAST, "steps without training would have equal losses"


@pytest.mark.long
def test_two_launched_processes_have_the_losses_and_bytes_of_one(tiny: Tiny, forks: Forks) -> None:
    one, two = (tiny(SHARDS, "training.processes=1", name=name).workspace.root for name in ("one", "two"))
    both = started(forks, two, 2)
    go(tiny(SHARDS, "training.processes=1", name="one"), launches.LAST)
    assert [process.wait() for process in both] == [0, 0], [process.read_output()[-2000:] for process in both]
    assert len(losses(one)) == launches.LAST and losses(two) == losses(one)
    ends = {fingerprint(root / f"checkpoints/rc1/step_{launches.LAST:05d}") for root in (one, two)}
    assert len(ends) == 1


@pytest.mark.parametrize("environment", [{}, ADDRESS, ADDRESS | {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}])
def test_process_without_a_launcher_or_alone_is_not_a_launch(environment: dict[str, str]) -> None:
    assert launch_of(environment) is None


def test_launch_is_read_from_the_environment_and_removed_from_it() -> None:
    launcher = ADDRESS | {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}
    assert launch_of(launcher) == Launch(rank=5, size=8, local=1)
    own = {"HOME": "/root", "ROLE_OF_THIS_MACHINE": "training"}
    launcher |= {"ACCELERATE_MIXED_PRECISION": "no", "TORCHELASTIC_RUN_ID": "none", "GROUP_RANK": "0"}
    environment = launcher | own
    forget_launch(environment)
    assert environment == own


@pytest.mark.parametrize(("rank", "size"), [("2", "2"), ("-1", "2"), ("first", "2"), ("0", "")])
def test_environment_with_an_invalid_rank_or_size_is_rejected(rank: str, size: str) -> None:
    with pytest.raises(RC1Error, match=rf" RANK={rank}, WORLD_SIZE={size}, LOCAL_RANK="):
        launch_of(ADDRESS | {"RANK": rank, "WORLD_SIZE": size})


@pytest.mark.parametrize(
    "address",
    [
        {},
        {"MASTER_ADDR": "10.0.0.1"},
        {"MASTER_PORT": "29500"},
        *(ADDRESS | {"MASTER_PORT": port} for port in ("", "0", "65536", "http")),
    ],
)
def test_environment_with_an_invalid_address_is_rejected(address: dict[str, str]) -> None:
    with pytest.raises(RC1Error, match=r" MASTER_ADDR=.*, MASTER_PORT=.*\(1 to 65535\)"):
        launch_of(address | {"RANK": "0", "WORLD_SIZE": "2"})


def test_port_in_use_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for name, value in (ADDRESS | {"MASTER_PORT": port, "RANK": "0", "WORLD_SIZE": "2"}).items():
            monkeypatch.setenv(name, value)
        with pytest.raises(RC1Error, match=rf" 127\.0\.0\.1:{port}\b.*\(.*EADDRINUSE"):
            join(Launch(rank=0, size=2, local=0))


def test_environment_of_a_launcher_of_one_process_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = {"RANK": "0", "WORLD_SIZE": "1", "ACCELERATE_MIXED_PRECISION": "bf16"}
    for name, value in alone.items():
        monkeypatch.setenv(name, value)
    assert _leads()
    assert not alone.keys() & os.environ.keys()


def test_every_process_sees_only_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [gpu_of(local, None, 2) for local in range(2)] == ["0", "1"]
    assert [gpu_of(local, "3, GPU-8f", 2) for local in range(2)] == ["3", "GPU-8f"]
    with pytest.raises(RC1Error, match=r"process 3 .* 2 GPUs; .*--num_processes 2\)"):
        gpu_of(2, "3,GPU-8f", 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    launched._take_device(1)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "6"


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The SIGTERM signals that reached the handler that was set before a launched group."""
    monkeypatch.setattr(launched, "_lost", False)
    monkeypatch.setattr(launched, "_joined", None)
    found: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: found.append(number))
    yield found
    signal.signal(signal.SIGTERM, before)


def test_sigterm_is_deferred_to_the_end_of_the_step_unless_a_process_was_lost(received: list[int]) -> None:
    with launched._terminated_later():
        signal.raise_signal(signal.SIGTERM)
        assert not received
    assert received == [signal.SIGTERM]
    with pytest.raises(ZeroDivisionError), launched._terminated_later():
        signal.raise_signal(signal.SIGTERM)
        print(1 / 0)
    assert received == [signal.SIGTERM] * 2
    with pytest.raises(LostError), launched._terminated_later():
        signal.raise_signal(signal.SIGTERM)
        raise LostError("process 2 of 2 is gone")
    signal.raise_signal(signal.SIGTERM)  # from the launcher, which notices the loss later
    assert len(received) == 2


def test_sigterm_is_ignored_after_a_loss_even_if_a_flow_restored_its_handler(
    received: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launched, "_meet", lambda _: [Pipe()[0]])
    for lost, signals in ((False, 1), (True, 1)):
        assert join(Launch(rank=0, size=2, local=0))
        with suppress(LostError), capture_sigterm(), launched._terminated_later():
            if lost:
                raise LostError("process 2 of 2 is gone")
        signal.raise_signal(signal.SIGTERM)
        assert len(received) == signals


def test_lost_process_is_reported_as_out_of_memory_by_the_kernels_oom_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vmstat = tmp_path / "vmstat"
    monkeypatch.setattr("rc1_lib.training.memory._VMSTAT", vmstat)
    for oom_kills, lacking in ((7, ""), (8, MEMORY)):
        vmstat.write_text("oom_kill 7\n")
        mine, theirs = Pipe()
        group = LaunchedGroup([mine])
        vmstat.write_text(f"oom_kill {oom_kills}\n")
        theirs.close()
        with (
            pytest.raises(LostError, match=rf"^process 2 of 2 .*({GO_ON}|{KILLED})$") as found,
            group.calling(Adder(group.link, 2).process),
        ):
            pass
        assert shortage(found.value) == lacking


def test_closed_launched_group_names_the_remedy() -> None:
    group = LaunchedGroup([Pipe()[0]])
    group.close()
    with pytest.raises(LostError, match=LaunchedGroup.to_go_on), group.calling(Adder(group.link, 2).process):
        pass


def test_process_lost_within_a_message_is_reported() -> None:
    mine, theirs = Pipe()
    group = LaunchedGroup([mine])
    with pytest.raises(LostError, match=rf"^process 2 of 2 .*{GO_ON}$"), group.calling(Adder(group.link, 2).process):
        os.write(theirs.fileno(), struct.pack("!i", 100) + b"half")
        theirs.close()


def test_connection_without_the_secret_of_the_launch_is_rejected() -> None:
    store = HashStore()
    with ThreadPoolExecutor() as threads:
        leads = threads.submit(launched._take_calls, store, "127.0.0.1", 3)
        port, secret = store.get(launched._MEETING).decode().split()
        for message in (f"{secret[1:]}0 1", secret, f"{secret} first", "x" * 1000):
            stranger = Connection(socket.create_connection(("127.0.0.1", int(port))).detach())
            stranger.send_bytes(message.encode())
            with pytest.raises((EOFError, ConnectionError)):
                stranger.recv_bytes()
        workers = [launched._call_first(store, "127.0.0.1", rank) for rank in (2, 1)]
        taken = leads.result()
    for rank, worker in ((2, workers[0]), (1, workers[1])):
        taken[rank - 1].send_bytes(b"%d" % rank)
        assert worker.recv_bytes() == b"%d" % rank


def test_shards_that_processes_cannot_share_evenly_are_rejected(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launched, "_joined", LaunchedGroup([Pipe()[0], Pipe()[0]]))
    assert processes_of(tiny("training.shards=6", "training.processes=1").config.training) == 3
    with pytest.raises(ConfigError, match=r"training\.shards: .* 2, expected a multiple of 3, "):
        go(tiny(SHARDS), 1)


OWN = ("sec_per_step", "mem_used_mb", "ts")
"""Metrics that differ by process: time and memory."""
TWO = ("accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--main_process_port", "0", "-m")


def launch(run: Run, by: Sequence[str] = TWO) -> subprocess.Popen[str]:
    """Train the tiny run to its last step in two processes of `accelerate launch`; in one process if `by` is empty."""
    return subprocess.Popen(
        [sys.executable, "-m", *by, launches.__name__, str(run.workspace.root)],
        env={**os.environ, "PYTHONPATH": str(PROJECT_ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


@pytest.mark.long
def test_accelerate_launch_has_the_metrics_of_one_process(tiny: Tiny) -> None:
    found = []
    for by in ((), TWO):
        run = tiny(name=str(len(by)))
        with launch(run, by) as process:
            output, _ = process.communicate()
        assert process.returncode == 0, output[-3000:]
        lines = run.workspace.path("reports/metrics.jsonl").read_text().splitlines()
        assert len(lines) == launches.LAST
        found.append([{name: value for name, value in json.loads(line).items() if name not in OWN} for line in lines])
    for one, two in zip(*found, strict=True):
        assert one["loss"] == pytest.approx(two["loss"], rel=0, abs=LOSS_TOLERANCE)
        assert one == two, "the metrics depend on the number of processes"


@pytest.mark.long
def test_killed_launched_process_is_reported_and_the_next_launch_resumes(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, whole = tiny(name="broken"), tiny(name="whole")
    monkeypatch.setenv(launches.DIES_IN, "3")
    with launch(broken) as process:
        output, _ = process.communicate()
    assert process.returncode == 1  # the launcher's exit code for a lost process
    assert "process 2 of 2" in output, output[-3000:]
    assert len(broken.workspace.path("reports/metrics.jsonl").read_text().splitlines()) == 2
    monkeypatch.delenv(launches.DIES_IN)
    for run in (broken, whole):
        with launch(run) as process:
            output, _ = process.communicate()
        assert process.returncode == 0, output[-3000:]
    last = f"checkpoints/rc1/step_{launches.LAST:05d}"
    assert fingerprint(broken.workspace.path(last)) == fingerprint(whole.workspace.path(last))
