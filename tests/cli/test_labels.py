"""`rc1 label`, `judge-agreement` and `weight-calib --labels`: in a pipe, in a real terminal, and their errors."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from rc1_lib.labels.label_file import read_labels
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.judge.bench import dialogues

from .conftest import Done, Rc1, records, widest_table_line

LABELS = "data/judge/labels.jsonl"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Eight dialogues, each with fields that an annotator must not see."""
    hidden = {"solved": True, "answer": "SECRET-GOLD", "score": 0.87, "id": "shadow/echo", "label": "good"}
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"messages": one, **hidden}) + "\n" for one in dialogues(8)))
    return path


@pytest.fixture
def press(rc1: Rc1, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`press("ggb", ...)`: the command with these keys in a pipe."""

    def run(keys: str, *flags: object) -> Done:
        monkeypatch.setattr(sys, "stdin", io.StringIO(keys))
        return rc1("label", "--workspace", tmp_path / "w", "--in", rows, *flags)

    return run


def test_each_key_writes_one_verdict(press: Any, tmp_path: Path) -> None:
    done = press("gb\nxg", "--n", "3")
    assert done.code == 0
    assert "unknown key 'x': g good, b bad" in done.out
    assert "3 labelled by me" in done.out and "next: rc1 judge-agreement" in done.out
    found = read_labels(tmp_path / "w" / LABELS)
    assert found.rows["label"].to_list() == [1, 0, 1]
    assert len(found.messages) == 3


def test_annotator_sees_the_dialogue_but_no_score_or_gold_answer(press: Any, rows: Path) -> None:
    done = press("gggggggg", "--n", "8")
    for record in records(rows):
        for message in record["messages"]:
            assert (message["content"] or "") in done.out
    for secret in ("SECRET-GOLD", "0.87", "shadow/echo", "solved", 'label"'):
        assert secret not in done.out


def test_dialogue_cannot_steer_the_annotators_terminal(press: Any, rows: Path) -> None:
    asked, said = "How old is she?\x1b[2J\x1b[8m", "Answer: 5\r"
    messages = [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]
    rows.write_text(json.dumps({"messages": messages}) + "\n")
    done = press("g", "--n", "1")
    assert r"How old is she?\x1b[2J\x1b[8m" in done.out and r"Answer: 5\r" in done.out
    assert "\x1b" not in done.out and "\r" not in done.out


def test_session_resumes_at_the_next_dialogue(press: Any, tmp_path: Path) -> None:
    first = press("gb")
    assert "2 labelled by me" in first.out and "48 to go" in first.out
    before = records(tmp_path / "w" / LABELS)
    second = press("q")
    assert "──── 3 of 50 ────" in second.out
    press("bbbbbb")
    after = records(tmp_path / "w" / LABELS)
    assert after[:2] == before
    assert len({json.dumps(one["messages"]) for one in after}) == len(after) == 8
    last = press("g")
    assert "8 labelled by me" in last.out and "42 more labels are needed" in last.out
    assert len(records(tmp_path / "w" / LABELS)) == 8


def test_skipped_dialogue_comes_again_and_verdicts_can_be_undone(press: Any, tmp_path: Path) -> None:
    done = press("sgugbuuuq")
    assert "there is no verdict of this session to undo" in done.out
    assert records(tmp_path / "w" / LABELS) == []
    press("sgb", "--n", "2")
    found = records(tmp_path / "w" / LABELS)
    again = press("gq", "--n", "3")
    assert "──── 3 of 3 ────" in again.out
    skipped = records(tmp_path / "w" / LABELS)[2]
    assert skipped["messages"] not in [one["messages"] for one in found]


def test_each_annotator_labels_every_dialogue_once(press: Any, tmp_path: Path) -> None:
    press("gggg", "--n", "4", "--annotator", "ada")
    press("bbbb", "--n", "4", "--annotator", "bob")
    found = read_labels(tmp_path / "w" / LABELS).rows
    assert found.group_by("annotator").len().sort("annotator").rows() == [("ada", 4), ("bob", 4)]
    assert found["dialogue"].n_unique() == 4


def test_shadow_set_is_labelled_by_default_with_groups_and_buckets(
    rc1: Rc1, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("gbgb"))
    assert rc1("label", "--workspace", workspace, "--n", "4", "--set", "pool.n=150", "--set", "shadow.n=40").code == 0
    found = records(workspace / LABELS)
    questions = {json.loads(line)["source_id"] for line in (workspace / "data/shadow_eval_245.jsonl").open()}
    assert {one["group"] for one in found} <= questions
    assert {one["bucket"] for one in found} <= {"easy", "medium", "hard"}
    assert all(set(one) == {"label", "annotator", "time", "group", "bucket", "messages"} for one in found)


@pytest.mark.parametrize(
    ("content", "error"),
    [("{", "line 1"), ('{"id": 1}\n', "line 1: found no 'messages'")],
)
def test_file_without_labels_is_not_overwritten(press: Any, tmp_path: Path, content: str, error: str) -> None:
    path = tmp_path / "w" / LABELS
    path.parent.mkdir(parents=True)
    path.write_text(content)
    done = press("g")
    assert done.code == 2 and error in done.err
    assert path.read_text() == content


def test_second_session_on_the_same_file_fails(press: Any, tmp_path: Path) -> None:
    path = tmp_path / "w" / LABELS
    path.parent.mkdir(parents=True)
    with FileLock(f"{path}.lock"):
        done = press("g")
    assert done.code == 2 and "another rc1 label is writing it" in done.err
    assert not path.exists()


# ---- a real terminal ----


@contextmanager
def terminal(*command: str) -> Iterator[tuple[int, int, subprocess.Popen[bytes]]]:
    """The program in its own terminal: (our end, its end, the process)."""
    ours, its = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT), "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-c", "from rc1_lib.cli import main; main()", *command],
        stdin=its, stdout=its, stderr=its, env=environment, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    )  # fmt: skip
    try:
        yield ours, its, process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(ours)
        os.close(its)


def wait_for(screen: int, text: str, seen: bytearray) -> None:
    """Read the screen until it has a text."""
    deadline = time.monotonic() + 120
    while text.encode() not in seen:
        assert time.monotonic() < deadline, f"'{text}' never came; the screen: {seen.decode(errors='replace')}"
        ready, _, _ = select.select([screen], [], [], 1)
        if ready:
            seen += os.read(screen, 65536)


def arguments(rows: Path, tmp_path: Path) -> Sequence[str]:
    return ("label", "--workspace", str(tmp_path / "w"), "--in", str(rows), "--n", "4")


def test_terminal_key_needs_no_return_and_is_saved_immediately(rows: Path, tmp_path: Path) -> None:
    path = tmp_path / "w" / LABELS
    with terminal(*arguments(rows, tmp_path)) as (ours, its, process):
        before = termios.tcgetattr(its)
        seen = bytearray()
        for number, key in enumerate(b"gbg", 1):
            wait_for(ours, f"{number} of 4", seen)
            os.write(ours, bytes([key]))
        wait_for(ours, "4 of 4", seen)
        assert [one["label"] for one in records(path)] == [True, False, True]
        os.write(ours, b"q")
        wait_for(ours, "1 to go", seen)
        assert process.wait(60) == 0
        assert termios.tcgetattr(its) == before


def test_killed_session_keeps_its_labels_and_an_interrupted_one_restores_the_terminal(
    rows: Path, tmp_path: Path
) -> None:
    path = tmp_path / "w" / LABELS
    with terminal(*arguments(rows, tmp_path)) as (ours, _, process):
        seen = bytearray()
        wait_for(ours, "1 of 4", seen)
        os.write(ours, b"g")
        wait_for(ours, "2 of 4", seen)
        process.kill()
    assert len(records(path)) == 1
    with terminal(*arguments(rows, tmp_path)) as (ours, its, process):
        before = termios.tcgetattr(its)
        seen = bytearray()
        wait_for(ours, "2 of 4", seen)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert termios.tcgetattr(its) == before
    assert len(records(path)) == 1


# ---- comparing ----


def judged(path: Path) -> Path:
    """A table of people's scores from 1 to 5 next to two scored criteria."""
    lines = ["text,by,overall,clear,short"]
    for number in range(80):
        grade = 1 + number % 5
        lines += [
            f"t{number},{who},{min(5, max(1, grade + shift))},{grade / 5},{(number * 7 % 10) / 10}"
            for who, shift in (("a", 0), ("b", number % 2))
        ]
    path.write_text("\n".join(lines) + "\n")
    return path


FLAGS = ("--label", "overall", "--group", "text", "--dimensions", "clear,short", "--scale", "1:5")


def test_judge_agreement_reports_a_foreign_table_of_scores(rc1: Rc1, tmp_path: Path) -> None:
    path = judged(tmp_path / "people.csv")
    path.write_text(path.read_text().replace("text,", "id,", 1))
    flags = ("--workspace", tmp_path / "w", "--labels", path, *FLAGS[:2], *FLAGS[4:], "--json")
    done = rc1("judge-agreement", *flags)
    body = json.loads(done.out)
    assert done.code == 0, done.err
    assert body["labels"] | {"path": ""} == {
        "path": "", "rows": 160, "dialogues": 80, "groups": 80, "annotators": 0, "levels": [0, 0.25, 0.5, 0.75, 1],
    }  # fmt: skip
    scores = {line["score"]: line["figures"]["rank correlation"]["value"] for line in body["agreement"]}
    assert scores["clear"] > 0.9 > scores["mean of dimensions"] > 0.3 > abs(scores["short"])
    shown = rc1("judge-agreement", *flags[:-1])
    assert "80 dialogues; judged is the mean of dimensions" in shown.out
    assert widest_table_line(shown.out) <= 100


def test_weight_calib_fits_weights_to_a_foreign_table_of_scores(rc1: Rc1, tmp_path: Path) -> None:
    path = judged(tmp_path / "people.csv")
    path.write_text(path.read_text().replace("text,", "id,", 1))
    small = ("--set", "gates.weights.max_weight=0.9", "--boot", "20")
    done = rc1("weight-calib", "--workspace", tmp_path / "w", "--labels", path, *FLAGS[:2], *FLAGS[4:], *small)
    assert done.code == 0, done.err
    assert "80 dialogues in 80 groups; the weights are in the report" in done.out
    (report,) = (tmp_path / "w/reports").glob("label_calibration_*.json")
    weights = json.loads(report.read_text())["weights"]
    assert weights["clear"] > 0.6
    assert not (tmp_path / "w/configs/weights.json").exists()


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (("judge-agreement",), "there are no labels yet; run rc1 label"),
        (("judge-agreement", "--labels", "none.csv"), "none.csv: cannot be read"),
        (("judge-agreement", "--labels", "people.csv", "--scale", "5"), "--scale 5: expected LOW:HIGH"),
        (("judge-agreement", "--labels", "people.csv", "--dimensions", "clear,clear"), "has a name twice"),
        (("judge-agreement", "--labels", "people.csv", *FLAGS), "line 2: found no 'messages' and no 'prompt', and no"),
    ],
)
def test_unusable_labels_or_flags_fail_with_a_message(
    rc1: Rc1, tmp_path: Path, command: tuple[str, ...], error: str
) -> None:
    judged(tmp_path / "people.csv")
    done = rc1(command[0], "--workspace", tmp_path, *command[1:])
    assert done.code == 2
    assert error in done.err


def test_a_comparison_that_fails_is_repeated_with_its_own_flags(rc1: Rc1, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("id,annotator,overall,clear,short\nt1,ada,4,0.75,0.50\nt1,bob,5,0.75,0.50\nt2,ada,2,0.50,1.00\n")
    flags = ("--label", "overall", "--dimensions", "clear,short", "--scale", "1:5")
    done = rc1("judge-agreement", "--workspace", tmp_path / "w", "--labels", path, *flags)
    assert done.code == 2
    repeated = done.out.splitlines()[-1].partition(": ")[2].split()
    for flag, value in zip(flags[::2], flags[1::2], strict=True):
        assert repeated[repeated.index(flag) + 1] == value
    assert str(path) in repeated
