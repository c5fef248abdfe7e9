"""The targets of the Makefile run what their lines say."""

from __future__ import annotations

import subprocess

import pytest

from rc1_lib.workspace.artifacts import PROJECT_ROOT


@pytest.mark.parametrize("target", ["preflight", "train", "resume"])
def test_targets_leave_the_profile_to_run_mode(target: str) -> None:
    printed = subprocess.check_output(["make", "--no-print-directory", "-n", target], cwd=PROJECT_ROOT, text=True)
    *_, command = printed.splitlines()
    assert command.startswith(".venv/bin/rc1 ")
    assert "--profile" not in command, "it would overrule RUN_MODE"
