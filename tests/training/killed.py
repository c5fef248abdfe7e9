"""Training in processes that are killed at random moments, until one gets to its end.

It runs in an interpreter of its own, which imports everything once and forks the processes that are killed: forks of
the tests' own interpreter would inherit locks of threads that other tests have started.
"""

from __future__ import annotations

import multiprocessing
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from rc1_lib.artifacts import PROJECT_ROOT


def until_done(what: str, workspace: Path, *overrides: str) -> int:
    """Do `what` (`train` to step 4, or `warm` up) in `workspace`; returns how often it was killed on the way."""
    command = [sys.executable, "-m", "tests.training.killed", what, str(workspace), *overrides]
    done = subprocess.run(command, cwd=PROJECT_ROOT, capture_output=True, text=True, check=False, timeout=800)
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout.splitlines()[-1])


def work_of(what: str, workspace: Path, overrides: list[str]) -> Callable[[], object]:
    """What is to be done, with all that is not to be killed done already."""
    import torch

    from rc1_lib.training.base_model import load_tokenizer
    from rc1_lib.training.chat_format import ChatFormat
    from rc1_lib.training.models import base_name, model_section
    from rc1_lib.training.ppo_run import advance, prepare
    from rc1_lib.training.rows import select_rows
    from rc1_lib.training.warm_start import reference_of
    from tests.training.tiny_world import tiny_run

    torch.set_num_threads(1)
    run = tiny_run(workspace, *overrides)
    if what == "train":
        prepared = prepare(run)
        return lambda: advance(prepared, run.config.seeds[0], 4, lambda _: None)
    form = ChatFormat(load_tokenizer(model_section(run.config, base_name(run.config, run.workspace))))
    rows = select_rows(run, form).train
    return lambda: reference_of(run, rows, form)


def main() -> None:
    """Print how often the work was killed before it got to its end."""
    what, workspace, *overrides = sys.argv[1:]
    work, moments = work_of(what, Path(workspace), overrides), random.Random(11)
    for kills in range(60):
        process = multiprocessing.get_context("fork").Process(target=work)
        process.start()
        # Early kills come often, later ones let it come further: both a step and a write are hit.
        process.join(moments.uniform(0.05, 0.6 * (1 + kills)))
        if process.is_alive():
            process.kill()
        process.join()
        if process.exitcode == 0:
            print(kills)
            return
        assert process.exitcode == -9, f"it ended by itself with {process.exitcode}"
    raise AssertionError("it never got to its end")


if __name__ == "__main__":
    main()
