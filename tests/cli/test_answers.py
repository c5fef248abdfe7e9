"""`rc1 check-answers`: answer rules are checked on the gold answers of the pool or of a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rc1_lib.task_specs import gsm8k, registered
from tests.answer_rules import plain_rules as rules

from .conftest import Rc1

ANSWERS = ("72", "5", "-3", "1200", "0.5")


@pytest.fixture
def own_tasks() -> Iterator[None]:
    """Two custom tasks, of which one has a sound answer rule."""
    specs = (("sound_sums", rules.sound_number), ("first_sums", rules.first_number))
    with registered(*(replace(gsm8k.SPEC, name=name, is_right=rule) for name, rule in specs)):
        yield


@pytest.fixture
def golds(tmp_path: Path) -> Path:
    path = tmp_path / "golds.jsonl"
    path.write_text("".join(json.dumps({"answer": text, "question": f"What is {text}0?"}) + "\n\n" for text in ANSWERS))
    return path


@pytest.mark.usefixtures("own_tasks")
def test_sound_custom_rule_passes_on_a_file_of_gold_answers(rc1: Rc1, tmp_path: Path, golds: Path) -> None:
    done = rc1("check-answers", "--workspace", tmp_path, "--task", "sound_sums", "--golds", golds, "--json")
    body = json.loads(done.out)
    assert (done.code, body["pass"], list(body["rules"])) == (0, True, ["sound_sums"])
    found = body["rules"]["sound_sums"]
    assert (found["form"], found["golds_used"], found["wrong_paid"]["failed"]) == ("number", 5, 0)
    assert {"kind": "full_stop", "right": True, "asked": 5, "failed": 0}.items() <= next(
        one for one in found["kinds"] if one["kind"] == "full_stop"
    ).items()


@pytest.mark.usefixtures("own_tasks")
def test_rule_that_reads_the_first_number_fails_with_the_wrong_answers_it_accepts(
    rc1: Rc1, tmp_path: Path, golds: Path
) -> None:
    done = rc1("check-answers", "--workspace", tmp_path, "--task", "first_sums", "--golds", golds)
    assert done.code == 2
    assert "not_it" in done.out and "FAILED" in done.out and "lists of all candidates paid[first_sums]" in done.out
    assert max(len(line) for line in done.out.splitlines() if line[:1] in "┏┃┡│└") <= 100
    listed = tmp_path / "reports/rc1/check_answers_answer_rule_offenders.jsonl"
    paid = [json.loads(line) for line in listed.read_text().splitlines()]
    assert {"kind": "not_it", "given": "not 72", "gold": "72", "reason": "not_it: wrong, but accepted"}.items() <= next(
        one for one in paid if one["given"] == "not 72"
    ).items()


@pytest.mark.usefixtures("own_tasks")
@pytest.mark.parametrize(
    ("content", "flags", "error"),
    [
        ('{"answer": "1"}\n{"answer": 5}\n', ("--task", "sound_sums"), "line 2: `answer` is 5, expected text"),
        ('"5"\n', (), "--golds: needs --task"),
        (None, ("--task", "sound_sums"), "cannot be read"),
    ],
)
def test_unusable_golds_or_task_fail_with_a_message(
    rc1: Rc1, tmp_path: Path, content: str | None, flags: tuple[str, ...], error: str
) -> None:
    path = tmp_path / "golds.jsonl"
    if content is not None:
        path.write_text(content)
    done = rc1("check-answers", "--workspace", tmp_path, "--golds", path, *flags)
    assert done.code == 2 and error in done.err.replace("\n", " ")
    assert "Traceback" not in done.err
