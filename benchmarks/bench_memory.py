"""Peak memory of every engine beside what was estimated of it before anything was allocated.

    OMP_NUM_THREADS=1 python benchmarks/bench_memory.py              # every engine, each decoder that a CPU has
    python benchmarks/bench_memory.py --only torch_ppo trl_sft --set batch_size=16

The base has an eighth of the published base's width and four of its layers, with its whole vocabulary, in NF4, states
computed again (`configs/ppo_scale.yaml` and `configs/train_local.yaml`), and random weights. An engine takes two steps
in a process of its own, which loads a base that another one has written. What a process held before its engine was set
up (Python, torch, the rows) is a part of both figures; the ratio without it is the harder test, and stands beside.
The estimate takes dialogues to be as long as the longest demonstration, and random weights play one turn: so a second
one is made of the length that they had, by which the sums themselves are held against what was used.
Writes `benchmarks/results/memory.json`, a line as soon as it is there; those of other engines stay.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))

from rc1_lib.config.engines import ENGINES, PLAYED, STRATEGIES, LearnsFrom, names_of
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import PROJECT_ROOT, Workspace, read_json, write_json, write_text
from tests.training.random_base import random_run

RESULTS = Path(__file__).parent / "results" / "memory.json"
SMALL = (
    "batch_size=8", "rollout_len=32", "training.limits.turns=1", "training.threads=1", "training.processes=1",
    "training.parity.mean=1e9", "training.parity.far_share=1.0",
)  # fmt: skip
ROWS = (
    "run.device_pref=[cpu]", "run.mixed_precision=fp32", "run.max_steps=2", "run.save_steps=2", "run.eval_steps=2",
    "data.batch_size=4", "data.max_length=256", "model.quantization=nf4", "model.lora.r=16",
)  # fmt: skip
ROW = {"input": "the lamp is in the attic and nobody has seen it " * 4, "output": "so ask where the key is " * 12}
DECODERS = ("growing", "slots")


def run_of(workspace: Path, engine: str, decoder: str, overrides: Sequence[str]) -> Run:
    """The published configuration with this engine, as small as a CPU wants it."""
    learner = ENGINES[engine]
    (strategy,) = names_of(STRATEGIES, learner.learns_from)
    chosen = (
        f"training.engine={engine}", f"training.strategy={strategy}", f"training.rollout.decoder={decoder}",
        f"training.{learner.update}.minibatches=2", *(["kl_coef=0.1"] if learner.beta else []),
        *([f"training.{learner.update}.group_size=4"] if learner.learns_from is LearnsFrom.GROUPS else []),
    )  # fmt: skip
    return random_run(workspace, *SMALL, *chosen, *overrides, narrower=8, layers=4)


def of_episodes(workspace: Path, engine: str, decoder: str, overrides: Sequence[str]) -> dict[str, Any]:
    """Two steps of an engine that learns from episodes."""
    from rc1_lib.training.base_model import base_config
    from rc1_lib.training.curriculum import Curriculum
    from rc1_lib.training.memory import used_mb
    from rc1_lib.training.memory_estimate import estimate_memory
    from rc1_lib.training.models import model_section
    from rc1_lib.training.playing_engine import PlayingEngine
    from rc1_lib.training.ppo_run import prepare
    from rc1_lib.training.registry import make_engine
    from rc1_lib.training.setups import EpisodeSetup

    prepared = prepare(run_of(workspace, engine, decoder, overrides))
    config, seed = prepared.run.config, prepared.run.config.seeds[0]
    before = used_mb()
    made = make_engine(engine, EpisodeSetup)
    assert isinstance(made, PlayingEngine)
    made.setup(prepared.setup(seed))
    strategy = prepared.strategy(seed)
    strategy.attach_engine(made)
    batches, peaks = Curriculum(prepared.selection.train, config.priority_sampling, config.prompts, seed), [used_mb()]
    for step in range(2):
        batch = batches.next() | {"step": step}
        strategy.on_batch(batch)
        peaks.append(used_mb())
        # Random weights solve nothing: scores that differ, so that there are advantages and pairs to learn from.
        batch["scores"] = [place % 3 / 2 for place in range(len(batch["scores"]))]
        made.train_step(batch)
        peaks.append(used_mb())
    longest = max(len(one.ids) for one in batch["trajectories"])
    shape = base_config(model_section(config, prepared.reference.base))
    known = replace(estimate_memory(config, shape, made.device, longest), held=made.memory.held)
    return {
        "before": before, "peaks": peaks, "used": peaks[-1], "estimated": made.memory.mebibytes(),
        "of dialogues as they were": known.mebibytes(),
        "tokens": {"longest dialogue": longest, "longest demonstration": prepared.selection.longest},
    }  # fmt: skip


def of_rows(workspace: Path, engine: str, overrides: Sequence[str]) -> dict[str, Any]:
    """Two steps of an engine that learns from rows, a look at the held-out ones and a checkpoint."""
    from rc1_lib.training import memory_estimate
    from rc1_lib.training.memory_estimate import MemoryEstimate
    from rc1_lib.training.metrics_log import MetricsLog
    from rc1_lib.training.run_paths import METRICS
    from rc1_lib.training.train_local import train_small

    place, base = Workspace(workspace / engine), workspace / "base"
    for name in ("train_min", "eval_min"):
        write_text(place.path(f"data/{name}.jsonl"), (json.dumps(ROW) + "\n") * 8)
    estimated, estimate = list[MemoryEstimate](), memory_estimate.estimate_rows_memory

    def kept(*given: Any) -> MemoryEstimate:
        estimated.append(estimate(*given))
        return estimated[-1]

    settings = (f"model.base={base}", f"engine.name={engine}", *ROWS, *overrides)
    with patch.object(memory_estimate, "estimate_rows_memory", kept):  # its parts are not among the metrics
        train_small(PROJECT_ROOT / "configs/train_local.yaml", place, None, settings, lambda _: None)
    lines = MetricsLog(place.path(METRICS)).read()
    return {"used": lines[-1]["mem_used_mb"], "estimated": estimated[-1].mebibytes()}


def child(work: Sequence[str], workspace: Path, overrides: Sequence[str]) -> dict[str, Any]:
    """What a process of its own measures; its last line."""
    command = [sys.executable, __file__, "--child", *work, "--workspace", str(workspace)]
    more = ["--set", *overrides] if overrides else []
    done = subprocess.run([*command, *more], capture_output=True, text=True, check=False, env=dict(os.environ))
    if done.returncode:
        raise SystemExit(f"{' '.join(work)}: {done.stderr[-3000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def shown(name: str, found: dict[str, Any]) -> str:
    """A line of the table: both estimates, and their ratios to what was used, with and without what was held before."""
    held, used = found["estimated"]["held before"], found["used"]
    line = f"| {name} | {held:,.0f} | {used:,.0f} |"
    for key in ("estimated", "of dialogues as they were"):
        peak = found.get(key, found["estimated"])["peak"]
        line += f" {peak:,.0f} | {peak / used:.2f} | {(peak - held) / (used - held):.2f} |"
    return line


def main() -> None:
    """Measure each, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=sorted(ENGINES), choices=sorted(ENGINES))
    parser.add_argument("--set", nargs="+", default=[])
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--workspace", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        engine, decoder = asked.child
        if decoder == "write":
            run_of(asked.workspace, "torch_ppo", DECODERS[0], ())
            found: dict[str, Any] = {}
        elif ENGINES[engine].learns_from is LearnsFrom.ROWS:
            found = of_rows(asked.workspace, engine, asked.set)
        else:
            found = of_episodes(asked.workspace, engine, decoder, asked.set)
        print(json.dumps(found))
        return
    kept = read_json(RESULTS)["mebibytes"] if RESULTS.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        child(("torch_ppo", "write"), Path(folder), ())
        for engine in asked.only:
            for decoder in DECODERS if engine in names_of(ENGINES, *PLAYED) else ("none",):
                name = engine if decoder == "none" else f"{engine}, {decoder}"
                found = child((engine, decoder), Path(folder), asked.set)
                print(shown(name, found), flush=True)
                if not asked.set:
                    kept[name] = found
                    write_json(RESULTS, {"machine": platform.machine(), "cores": os.cpu_count(), "mebibytes": kept})


if __name__ == "__main__":
    main()
