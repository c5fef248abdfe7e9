"""A workspace after a training: really trained for four steps, and evaluated on made-up episodes of known habits."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from rc1_lib.evaluation.chance import Chance
from rc1_lib.evaluation.evaluate import evaluate
from rc1_lib.evaluation.gate import ppo_eval_gate
from rc1_lib.evaluation.report import Provenance, write_evaluation
from rc1_lib.preflight.carried_ticket import carried
from rc1_lib.preflight.round_report import write_git_state
from rc1_lib.preflight.ticket import read_ticket
from rc1_lib.run import Run, open_run
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.ppo_run import advance, prepare
from rc1_lib.workspace.artifacts import now, write_json
from tests.evaluation.tables import PPO, SFT, Habits, table


def trained(opened: Run, root: Path) -> Run:
    """Copy a workspace with a ticket and train in it, without an evaluation."""
    shutil.copytree(opened.workspace.root, root, symlinks=True, ignore=shutil.ignore_patterns("logs"))
    run = open_run(profile="local", workspace=root, overrides=opened.overrides)
    run.write_effective_config()
    write_git_state(run)
    advance(prepare(run), run.config.seeds[0], run.config.steps, lambda _: None)
    return run


def evaluated(run: Run, ppo: Habits = PPO, examples: str = "# Dialogues\n") -> dict[str, Any]:
    """Evaluate the trained policy as one of these habits, and write the training's report; gives the evaluation's."""
    seed, checkpoint = run.config.seeds[0], f"checkpoints/rc1/step_{run.config.steps:05d}"
    sha256 = fingerprint(run.workspace.path(checkpoint))
    frame = table(SFT, ppo, seed=seed)
    chance = Chance(0.25, {"gsm8k": 0.1})
    found = evaluate(frame, confidence=0.95, resamples=50, seed=1, chance=chance)
    made = Provenance({"sft": "a" * 64, f"ppo seed {seed}": sha256}, "c" * 64, "d" * 64, {"temperature": 1.0}, 1)
    gate = ppo_eval_gate(found, run.config.gates.evaluation)
    written = write_evaluation(
        run, found, gate, frame=frame, provenance=made, examples=examples,
        curves=run.workspace.path("reports/metrics.jsonl"),
    )  # fmt: skip
    trained_run = {"seed": seed, "checkpoint": checkpoint, "sha256": sha256, "cached": 0, "segments": []}
    body = {
        "ticket": carried(read_ticket(run)).model_dump(),
        "time": now(), "profile": "local", "config_sha256": run.config_sha256, "pass": written.passed,
        "state": "PolicyImproved" if written.passed else "GatesFailed", "message": "", "reference": "c" * 64,
        "rows": {}, "runs": [trained_run], "evaluation": written.report, "best": [], "seconds": {"training": 1.0},
    }  # fmt: skip
    write_json(run.workspace.path("reports/train.json"), body)
    return dict(written.body)
