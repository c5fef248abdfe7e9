"""mypy, begun before the workers of the tests are: half a minute of a core that nobody else uses at first.

While the one process imports what all workers are forked from, the other core would have nothing to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from rc1_lib.workspace.artifacts import PROJECT_ROOT

TEST = "tests/house/test_house.py"
_FOLDER = "RC1_TESTS_MYPY"
_COMMAND = '"$1" -m mypy > "$2/output" 2>&1; echo $? > "$2/code.part"; mv "$2/code.part" "$2/code"'


def begin(config: pytest.Config) -> None:
    """Begin it where the run has its test; workers that are forked then find it by their environment."""
    asked = any(TEST.startswith(argument.rstrip("/")) for argument in config.args)
    if asked and not config.option.keyword and config.option.markexpr == "not long":
        os.environ[_FOLDER] = folder = tempfile.mkdtemp(prefix="rc1-mypy-")
        subprocess.Popen(["sh", "-c", _COMMAND, "sh", sys.executable, folder], cwd=PROJECT_ROOT)


def result() -> subprocess.CompletedProcess[str] | None:
    """How it ended and what it said; None where nobody has begun it."""
    folder = os.environ.pop(_FOLDER, None)
    if folder is None:
        return None
    code = Path(folder, "code")
    while not code.exists():  # the suite's own bound on a test ends it
        time.sleep(0.1)
    found = subprocess.CompletedProcess("mypy", int(code.read_text()), Path(folder, "output").read_text())
    shutil.rmtree(folder)
    return found
