"""The history of the nightly: every night is in it once, whatever ended it, and nothing tears it."""

from __future__ import annotations

import os
import signal
import time
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest

from rc1_lib.checks import at_least, info
from rc1_lib.errors import RC1Error
from rc1_lib.numbers.uncertainty import CheckInterval
from rc1_lib.preflight.nights import NIGHTS, KeptNight, Night, NightOutcome, parse_nights
from rc1_lib.preflight.ticket import revoke_ticket
from rc1_lib.records import GateResult
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import Workspace
from tests.forks import this_interpreter

NEAR = CheckInterval(0.6, 0.8, 0.95, 400, "rows")
GATES = {
    "round1": [
        GateResult("diversity", (at_least("distinct-2", 0.7, 0.65, "write more templates", NEAR), info("rows", 5))),
        GateResult("judge_probe", error="nobody answered"),
    ]
}


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def keep(place: Workspace, name: str, **given: Any) -> None:
    with Night(name, place, **given) as night:
        night.ended(NightOutcome.FAILED, f"of {name}", GATES)


def kept(place: Workspace) -> list[KeptNight]:
    return parse_nights(place.path(NIGHTS).read_bytes(), NIGHTS)


def test_a_night_is_kept_with_what_decided_each_gate(place: Workspace) -> None:
    keep(place, "one")
    (night,) = kept(place)
    assert (night.outcome, night.verdict, night.judge) == (NightOutcome.FAILED, "of one", {})
    diversity, probe = night.gates
    assert (diversity.round, diversity.name, diversity.status) == ("round1", "diversity", "passed")
    (check,) = diversity.checks
    assert (check.name, check.value, check.threshold, check.interval) == ("distinct-2", 0.7, 0.65, NEAR)
    assert (probe.status, probe.why) == ("error", "nobody answered")


def test_a_night_is_kept_once_however_often_it_is_told_of(place: Workspace) -> None:
    for name in ("one", "two", "one"):
        keep(place, name)
    assert [night.verdict for night in kept(place)] == ["of one", "of two"]


def test_an_error_is_kept_and_goes_on(place: Workspace) -> None:
    with pytest.raises(OSError, match="disk full"), Night("one", place):
        raise OSError("disk full")
    with pytest.raises(OSError, match="disk full"), Night("two", place) as night:
        night.ended(NightOutcome.FAILED, "a gate failed", GATES)
        raise OSError("disk full")
    first, second = kept(place)
    assert (first.outcome, first.verdict) == (NightOutcome.ERROR, "disk full")
    assert (second.outcome, second.verdict) == (NightOutcome.ERROR, "a gate failed; then disk full")
    assert len(second.gates) == 2


@pytest.mark.parametrize("cut", [1, 40, -1])
def test_a_torn_last_line_is_passed_over_and_cut_off(place: Workspace, cut: int) -> None:
    keep(place, "one")
    path = place.path(NIGHTS)
    whole = path.read_bytes()
    path.write_bytes(whole + whole.rstrip()[:cut])
    assert len(kept(place)) == 1
    keep(place, "two")
    assert [night.verdict for night in kept(place)] == ["of one", "of two"]
    assert path.read_bytes().startswith(whole + b'{"id":"two"')


def test_a_last_line_that_lacks_its_end_alone_is_whole(place: Workspace) -> None:
    keep(place, "one")
    path = place.path(NIGHTS)
    path.write_bytes(path.read_bytes().rstrip())
    keep(place, "two")
    assert [night.verdict for night in kept(place)] == ["of one", "of two"]


def append_for_ever(root: str) -> None:
    for number in count(1):
        keep(Workspace(Path(root)), f"{os.getpid()} {number}")


def test_killed_while_appending_every_night_before_it_is_kept(place: Workspace, tmp_path: Path) -> None:
    path, until = place.path(NIGHTS), time.monotonic() + 120
    forks = this_interpreter(tmp_path / "forks")
    for _ in range(5):
        before = path.stat().st_size if path.exists() else 0
        writer = forks.start(f"{__name__}.append_for_ever", place.root)
        while not path.exists() or path.stat().st_size < before + 10_000:
            assert writer.poll() is None and time.monotonic() < until, writer.told()
        assert writer.kill() == -signal.SIGKILL
    keep(place, "0 1")
    told = [night.verdict.split()[1:] for night in kept(place)]
    for writer_id in dict.fromkeys(one for one, _ in told):
        numbers = [int(number) for one, number in told if one == writer_id]
        assert numbers == list(range(1, len(numbers) + 1))
    assert told[-1] == ["0", "1"]


@pytest.mark.parametrize(("then", "now"), [("green", NightOutcome.PASSED), ("red", NightOutcome.FAILED)])
def test_a_night_of_version_0_1_0_is_read(place: Workspace, then: str, now: NightOutcome) -> None:
    keep(place, "one")
    path = place.path(NIGHTS)
    path.write_bytes(orjson.dumps({**orjson.loads(path.read_bytes()), "outcome": then}) + b"\n")
    assert [night.outcome for night in kept(place)] == [now]


def test_a_check_of_version_0_1_0_has_todays_name(place: Workspace) -> None:
    keep(place, "one")
    path = place.path(NIGHTS)
    check = {**at_least("x", 0.2, 0.05, "").to_dict(), "name": "echo: below the teacher by"}
    gate = {"name": "reward_hacking", "status": "passed", "why": "", "checks": [check]}
    path.write_bytes(orjson.dumps({**orjson.loads(path.read_bytes()), "rounds": {"round1": [gate]}}) + b"\n")
    (night,) = kept(place)
    assert [one.name for one in night.gates[0].checks] == ["echo: below the scripted expert by"]


def test_what_is_no_night_is_named_by_its_line(place: Workspace) -> None:
    keep(place, "one")
    path = place.path(NIGHTS)
    good = orjson.loads(path.read_bytes())
    for change in ({"rounds": []}, {"began": "yesterday"}, {"began": "2026-11-22T03:00:00"}, {"outcome": "purple"}):
        path.write_bytes(orjson.dumps(good) + b"\n" + orjson.dumps({**good, **change}) + b"\n")
        with pytest.raises(RC1Error, match=r"nights\.jsonl, line 2: "):
            kept(place)


def test_no_secret_gets_into_it(place: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCORER_API_KEY", "sk-planted-0123456789")
    with pytest.raises(RC1Error), Night("one", place):
        raise RC1Error("refused for sk-planted-0123456789 at https://me:pass-word@host/?api_key=other-key-0123")
    text = place.path(NIGHTS).read_text()
    assert "planted" not in text and "pass-word" not in text and "other-key" not in text
    assert "refused for ***" in text


def test_without_a_workspace_there_is_nowhere_to_keep_it(place: Workspace) -> None:
    nowhere = Workspace(place.root / "none")
    keep(nowhere, "one")
    assert not nowhere.root.exists()


def test_where_nobody_was_asked_the_judges_figures_are_none(place: Workspace) -> None:
    run = open_run(profile="local", workspace=place.root)
    keep(place, "one", run=run)
    (night,) = kept(place)
    assert night.config_sha256 == run.config_sha256
    assert (night.judge["calls"], night.judge["hit_rate"], night.judge["usd"]) == (0, None, None)
    run.workspace.path(run.config.judge.store.path).parent.mkdir(parents=True)
    run.workspace.path(run.config.judge.store.path).write_bytes(b"no database at all" * 99)
    keep(place, "two", run=run)
    assert list(kept(place)[1].judge) == ["unreadable"]


def test_it_says_why_the_ticket_was_revoked(ticketed: Run) -> None:
    keep(ticketed.workspace, "one", run=ticketed)
    revoke_ticket(ticketed, "the pool has changed")
    keep(ticketed.workspace, "two", run=ticketed)
    assert [night.revoked for night in kept(ticketed.workspace)] == [None, "the pool has changed"]
