"""Which tests share a worker, in what order groups are handed out, and when the server of some of them is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.groups import CALIBRATIONS, FLOWS, ByGroup, group_of, turn_of
from tests.lasting_server import LastingServer

FLOW, CALIBRATION = "tests/flows/test_data.py::test_a", "tests/flows/test_calibrate.py::test_c"
OTHERS = [f"tests/house/test_docs.py::test_{number}" for number in range(9)]


class Worker:
    """Is told what to run, and runs nothing."""

    gateway, shutting_down = SimpleNamespace(id="gw0"), False

    def __init__(self) -> None:
        self.told: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.told += indices

    def shutdown(self) -> None:
        self.shutting_down = True


@pytest.mark.parametrize("reorder", [True, False])
def test_groups_are_handed_out_as_collected_whatever_pytest_was_started_with(reorder: bool) -> None:
    collected = sorted([*OTHERS, CALIBRATION, FLOW], key=turn_of)
    assert [group_of(one) for one in collected[:2]] == [FLOWS, CALIBRATIONS]
    options = SimpleNamespace(loadscopereorder=reorder, tx=["popen"], maxprocesses=None, px=[])
    config: Any = SimpleNamespace(option=options, getvalue=lambda name: getattr(options, name))
    log: Any = SimpleNamespace(loadscopesched=lambda *_: None)
    scheduler, worker = ByGroup(config, log), cast(Any, Worker())
    scheduler.add_node(worker)
    scheduler.add_node_collection(worker, collected)
    scheduler.schedule()
    assert [collected[at] for at in worker.told[:2]] == [FLOW, CALIBRATION]


def test_a_server_that_left_is_there_again_for_whoever_needs_it_later() -> None:
    """As where one worker has both groups, and tests of another one between them."""
    there: list[str] = []

    @contextmanager
    def start() -> Iterator[None]:
        there.append("up")
        yield
        there.append("gone")

    server = LastingServer()
    server.needed(True)
    assert there == [], "nobody has asked for one yet"
    server.begin(start)
    server.needed(True)
    assert there == ["up"]
    server.needed(False)
    server.needed(False)
    assert there == ["up", "gone"]
    server.needed(True)
    assert there == ["up", "gone", "up"]
    server.end()
    server.needed(True)
    assert there == ["up", "gone", "up", "gone"]
