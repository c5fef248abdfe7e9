"""`rc1 review`: the page and the table, from a made-up history."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rc1_lib.checks import at_most
from rc1_lib.numbers.uncertainty import CheckInterval
from rc1_lib.preflight.nights import NIGHTS
from rc1_lib.records import GateResult
from rc1_lib.release.report.review import PAGE, write_review
from rc1_lib.run import open_run
from rc1_lib.workspace.artifacts import Workspace
from rc1_lib.workspace.file_hashes import sha256_file
from tests.cli.conftest import call
from tests.release.histories import night, values, write
from tests.release.test_report import HOSTILE, Tags

pytestmark = pytest.mark.usefixtures("drawn")

EVIL = HOSTILE.encode("ascii", "ignore").decode()
JUDGE = {
    "scores": 100, "calls": 90, "hit_rate": 0.1, "share_429": 0.02, "latency_ms_median": 400.0, "latency_ms_p95": 900.0,
    "usd": 0.31, "cost_unknown": 0, "unstable": 0.03,
}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    """Six nights: one gate falls and is red at the end, another one has words and hostile names only."""
    check = at_most(EVIL, 0.01, 0.02, "", CheckInterval(0.005, 0.015, 0.95, 400, "rows"))
    gates = {EVIL: GateResult(EVIL, (check,)), "waived": GateResult("waived", waiver=EVIL)}
    lines = [
        night(day, {"falls": 1.5 - 0.1 * day, **gates}, judge=None if day == 2 else JUDGE, verdict=f"{day} {EVIL}")
        for day in range(7)
    ]
    write(place := Workspace(tmp_path), lines)
    return place


def page_of(place: Workspace, days: int = 7) -> str:
    return place.path(write_review(open_run(profile="local", workspace=place.root), days).path).read_text()


def test_the_same_history_gives_the_same_page(place: Workspace) -> None:
    run = open_run(profile="local", workspace=place.root)
    first = write_review(run, 7)
    assert write_review(run, 7) == first
    assert first.sha256 == sha256_file(place.path(PAGE))


def test_every_gate_and_the_traffic_are_drawn_and_hostile_names_stay_text(place: Workspace) -> None:
    text = page_of(place)
    tags = Tags(text)
    assert {tag for tag, _ in tags.found} & {"script", "img", "iframe", "object", "embed"} == set()
    attributes = [(name, value or "") for _, one in tags.found for name, value in one.items()]
    assert [name for name, _ in attributes if name.startswith("on") or name == "src"] == []
    assert [value for name, value in attributes if name.endswith("href") and "//" in value] == []
    assert len(tags.ids) == len(set(tags.ids)), "two pictures share a name"
    assert "{{ 7 * 7 }}" in text
    assert text.count("<figure>") == 1 + 2 + 6
    assert 'class="badge failed">FAILED' in text
    assert sha256_file(place.path(NIGHTS)) in text


def test_a_red_night_is_marked_and_named_at_the_top(place: Workspace) -> None:
    head = page_of(place).partition("<nav>")[0]
    assert "1 of 7 nights did not pass" in head
    assert "<b>2026-11-07, failed</b>: 6 &lt;/pre&gt;" in head


def test_no_trend_is_drawn_from_few_nights(place: Workspace) -> None:
    write(place, values(2.0, 1.9, 1.81, 1.7, 1.61, 1.5))
    assert ">trend<" in page_of(place)
    assert ">trend<" not in page_of(place, 2)


def test_the_table_fits_80_columns(place: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("review", "--workspace", str(place.root)) == 0
    printed = capsys.readouterr().out
    table = printed.partition("what changed")[2].partition("SHA-256")[0].splitlines()
    assert len(table) > 3 and max(map(len, table)) == 80
    assert "newly failed" in printed and "value 0.9, wanted >= 1" in printed
    assert call("review", "--workspace", str(place.root), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["nights"], document["changes"][0]["what"]) == ({"passed": 6, "failed": 1}, "newly failed")


@pytest.mark.parametrize(
    ("history", "words"),
    [(None, "has no nights yet"), (b"", "has no nights yet"), (b"[]\n", "line 1: is not a record of a night")],
)
def test_a_history_without_nights_is_a_sentence(
    history: bytes | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if history is not None:
        write(place := Workspace(tmp_path), [])
        place.path(NIGHTS).write_bytes(history)
    assert call("review", "--workspace", str(tmp_path)) == 2
    said = capsys.readouterr().err
    assert words in said and "Traceback" not in said
    assert not (tmp_path / PAGE).exists()
