"""`learnability` from the command line."""

from __future__ import annotations

import json

from rc1_lib.preflight.ticket import revoke_ticket
from rc1_lib.run import Run

from .conftest import Rc1
from .test_train import own

__all__ = ["own"]


def test_it_shows_groups_and_the_gate_and_needs_the_ticket(rc1: Rc1, own: Run) -> None:
    settings = [part for override in own.overrides for part in ("--set", override)]
    call = ("learnability", "--workspace", str(own.workspace.root), *settings)
    done = rc1(*call, "--json")
    body = json.loads(done.out)
    # A base of seconds solves next to nothing, and twelve held-out prompts show no effect.
    assert (done.code, body["exit_code"], body["gate"]["status"]) == (2, 2, "failed"), done.err
    assert {"all", "gsm8k", "hard"} <= body["groups"].keys()
    assert own.workspace.path("reports/learnability.json").is_file()
    revoke_ticket(own, "a test")
    refused = rc1(*call)
    assert (refused.code, "the ticket is refused" in refused.err) == (2, True)
