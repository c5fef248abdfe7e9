"""A policy that was trained under one ticket does not pass as that of a later ticket that pins something else."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.preflight.carried_ticket import carried, why_outdated
from rc1_lib.preflight.ticket import read_ticket
from rc1_lib.release.ready import check_ready
from rc1_lib.release.report import write_page
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import read_json, write_json
from tests.cli.conftest import call
from tests.conftest import Verdicts
from tests.ticketed import ticketed

REPORT = "reports/train.json"
SAID = re.compile(
    r"trained under the ticket of \S+ \(\w{12}\), but today's is the ticket of \S+ \(\w{12}\), which pins another "
    r"templates; run `rc1 train` again"
)
TICKET: dict[str, Any] = {
    "issued": "2026-11-28T10:00:00+00:00", "ticket_sha256": "a" * 64, "code_sha256": "c", "config_sha256": "d",
    "judge": {"provider": "rubric", "spec": "e"}, "files": {"pool": {"path": "p", "sha256": "f"}},
}  # fmt: skip


def changed(run: Run, **keys: Any) -> None:
    write_json(run.workspace.path(REPORT), {**read_json(run.workspace.path(REPORT)), **keys})


@pytest.fixture
def outdated(own: Run) -> Run:
    """A trained run whose ticket is not that of the training: it pins other templates, as after a new preflight."""
    then = read_json(own.workspace.path(REPORT))["ticket"]
    pins = {**then["pins"], "templates": "0" * 64}
    changed(own, ticket={**then, "issued": "2026-11-27T10:00:00+00:00", "ticket_sha256": "1" * 64, "pins": pins})
    return own


def ask(run: Run, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Give the exit code of a command in the run's workspace, and all that it printed, on one line."""
    settings = [part for override in run.overrides for part in ("--set", override)]
    code = call(*arguments, "--workspace", str(run.workspace.root), *settings)
    shown = capsys.readouterr()
    return code, " ".join(f"{shown.out} {shown.err}".split())


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        ({"issued": "2026-11-29T10:00:00+00:00", "ticket_sha256": "b" * 64, "reports": {"round1": 1}}, ""),
        ({"code_sha256": "x"}, "code"),
        ({"files": {"pool": {"path": "p", "sha256": "x"}}}, "pool"),
        ({"files": {}}, "pool"),
    ],
)
def test_tickets_that_pin_the_same_vouch_for_the_same_training(edit: dict[str, Any], named: str) -> None:
    training = {"ticket": carried(TICKET).model_dump()}
    why = why_outdated(training, {**TICKET, **edit})
    assert (f"pins another {named}; " in why) if named else why == ""


@pytest.mark.parametrize("recorded", [{}, {"ticket": {"issued": 5}}])
def test_training_that_names_no_ticket_is_not_vouched_for(recorded: dict[str, Any]) -> None:
    assert "does not say which ticket the training carried" in why_outdated(recorded, TICKET)


def test_new_ticket_for_the_same_files_still_vouches(own: Run, built: Run, verdicts: Verdicts) -> None:
    before = read_ticket(own)["ticket_sha256"]
    ticketed(own.workspace.root, built, verdicts)
    assert read_ticket(own)["ticket_sha256"] != before
    check_ready(own)
    assert write_page(own).failed == ()


def test_report_says_so_at_its_head_and_does_not_say_passed(outdated: Run) -> None:
    page = write_page(outdated)
    (reason,) = page.failed
    assert SAID.search(reason)
    text = outdated.workspace.path(page.path).read_text(encoding="utf-8")
    head = text[: text.index("Gates that did not judge")]
    assert ">FAILED<" in head and ">PASSED<" not in text
    assert "the policy was trained under the ticket of 2026-11-27T10:00:00+00:00 (111111111111)" in head


def test_release_refuses_and_packs_nothing(outdated: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RC1Error, match=r"^no release: .*train\.json: the policy was trained under "):
        check_ready(outdated)
    code, said = ask(outdated, capsys, "release")
    assert code == 2 and SAID.search(said)
    assert not list(outdated.workspace.path("reports").rglob("*.tar"))


@pytest.mark.parametrize(
    "command",
    [lambda run: ["ckpt", "export", "latest"], lambda run: ["evaluate", "latest"]],
    ids=["export", "evaluate"],
)
def test_policy_is_not_used_under_another_ticket(
    outdated: Run, command: Callable[[Run], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path for path in outdated.workspace.root.rglob("*")}
    code, said = ask(outdated, capsys, *command(outdated))
    assert code == 2 and SAID.search(said)
    written = {path for path in outdated.workspace.root.rglob("*") if path.is_file()} - before
    assert not [path for path in written if path.suffix in (".safetensors", ".gguf") or "offline" in path.name]
