"""Whole PPO steps of a QLoRA policy on one GPU: seconds, tokens a second, memory, and how far from the chip's limits.

    python benchmarks/bench_gpu_ppo.py                    # on a GPU: Qwen3-4B's shape in NF4, 32 dialogues a step
    python benchmarks/bench_gpu_ppo.py --steps 5 --set training.rollout.rows=64

The policy is that of `rc1 train --random-base --profile prod`: random weights of the published base's shape, through
the engine, rollouts and update of a real training. Random weights end no turn, so every turn has `rollout_len` tokens.
A first step is not timed; seconds are medians of the others; a last step, which waits for the device around every part,
says what share each part has. The limits are measured on the same device: bytes a second by copying, floating-point
operations a second by multiplying matrices.

Where there is no GPU it does the same with an eighth of the width, four layers and eight short dialogues: a smoke run,
which says that this script works, and nothing about a GPU. On a GPU it writes `benchmarks/results/gpu_ppo.json`.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from rc1_lib.artifacts import write_json
from rc1_lib.run import Run, open_run
from rc1_lib.training.base_model import base_config
from rc1_lib.training.curriculum import Curriculum
from rc1_lib.training.device import get_device
from rc1_lib.training.engines.torch_ppo import TorchPPO
from rc1_lib.training.memory import used_mb
from rc1_lib.training.models import model_section
from rc1_lib.training.ppo_run import Prepared
from rc1_lib.training.rollout.trajectory import Trajectory
from rc1_lib.training.spans import Part
from rc1_lib.training.trial.trial import prepare_trial

RESULTS = Path(__file__).parent / "results" / "gpu_ppo.json"
SMOKE = (
    "training.trial.narrower=8", "training.trial.layers=4", "batch_size=8", "rollout_len=16",
    "training.ppo.minibatches=2", "training.threads=1", "training.processes=1",
)  # fmt: skip
PLAYING = (Part.READ, Part.DECODE, Part.DRAW, Part.WORLD)


@dataclass(frozen=True)
class Step:
    """What one step took and did."""

    play_s: float
    learn_s: float
    episodes: list[Trajectory]

    @property
    def sampled(self) -> int:
        """Tokens that were sampled."""
        return sum(one.own_tokens for one in self.episodes)

    @property
    def tokens(self) -> int:
        """All tokens of the episodes: each is read by the reference, and learned from."""
        return sum(len(one.ids) for one in self.episodes)


def settled(device: torch.device) -> None:
    """Wait for whatever the device was asked to do."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def one_step(engine: TorchPPO, strategy: Any, batch: dict[str, Any]) -> Step:
    """Play and learn one step."""
    began = time.perf_counter()
    strategy.on_batch(batch)
    settled(engine.device)
    played = time.perf_counter()
    engine.train_step(batch)
    settled(engine.device)
    return Step(played - began, time.perf_counter() - played, batch["trajectories"])


def shares_of(engine: TorchPPO, step: Callable[[], Step]) -> dict[str, float]:
    """The share that each part has of a step that waits for the device around every one."""
    engine.start_timing()
    took = step()
    (kept,) = engine.timings()
    whole = took.play_s + took.learn_s
    shares = {str(part): sum(one.ended - one.began for one in kept if one.part is part) / whole for part in Part}
    return {**shares, "everything else": 1 - sum(shares.values())}


def best_s(work: Callable[[], object], device: torch.device, repeats: int = 5) -> float:
    """Seconds of the fastest of several tries, behind one that is not timed."""
    seconds = []
    for _ in range(1 + repeats):
        settled(device)
        began = time.perf_counter()
        work()
        settled(device)
        seconds.append(time.perf_counter() - began)
    return min(seconds[1:])


def limits_of(device: torch.device) -> dict[str, float]:
    """Bytes and floating-point operations a second, as this device does them at its best."""
    gpu = device.type == "cuda"
    number, side, dtype = (2**30, 8192, torch.bfloat16) if gpu else (2**26, 1024, torch.float32)
    source = torch.ones(number, dtype=torch.uint8, device=device)
    target, square = torch.empty_like(source), torch.ones((side, side), dtype=dtype, device=device)
    copied = best_s(lambda: target.copy_(source), device)
    multiplied = best_s(lambda: square @ square, device)
    return {"bytes_per_s": 2 * number / copied, "flops_per_s": 2 * side**3 / multiplied}


def work_of(engine: TorchPPO, prepared: Prepared, step: Step) -> dict[str, float]:
    """What the step cannot do without: bytes that decoding has to read, operations that learning has to do.

    A decoding step reads every weight as it is sampled with, and the keys and values of the rows that write. Learning
    takes the tokens through the matrices once for the reference, once forward, once backward (the frozen weights need
    no gradients of their own), once more where states are computed again, and once more where a copy has sampled them;
    logits are needed of own tokens alone.
    """
    section = model_section(prepared.run.config, prepared.reference.base)
    shape = base_config(section).get_text_config()
    standing, width = engine.memory.standing, 4 if engine.device.type == "cpu" else 2
    per_token = 2 * shape.num_hidden_layers * shape.num_key_value_heads * shape.head_dim * width
    rows = prepared.run.config.training.rollout.rows
    most = max(one.own_tokens for one in step.episodes)
    passes = -(-len(step.episodes) // rows) * most
    head = shape.vocab_size * shape.hidden_size
    linear = sum(
        layer.in_features * layer.out_features
        for name, layer in engine.policy.causal.named_modules()
        if name.rpartition(".")[2] in section.lora.target_modules and hasattr(layer, "in_features")
    )
    copied = standing["sampling copy"]
    again = int(copied > 0)
    times = 3 + prepared.run.config.training.gradient_checkpointing + again
    return {
        "decoded_bytes": passes * (copied + head * width if copied else standing["weights"])
        + sum(one.own_tokens * len(one.ids) for one in step.episodes) * per_token,
        "learned_flops": 2.0 * (times * linear * step.tokens + (3 + again) * head * step.sampled),
    }


def measured(prepared: Prepared, steps: int) -> dict[str, Any]:
    """All figures of one policy."""
    config, seed = prepared.run.config, prepared.run.config.seeds[0]
    engine, strategy = TorchPPO(), prepared.strategy(seed)
    engine.setup(prepared.setup(seed))
    strategy.attach_engine(engine)
    batches, number = Curriculum(prepared.selection.train, config.priority_sampling, config.prompts, seed), 0

    def step() -> Step:
        nonlocal number
        number += 1
        return one_step(engine, strategy, batches.next() | {"step": number - 1})

    step()
    taken = [step() for _ in range(steps)]
    peak, shares, last = used_mb(), shares_of(engine, step), taken[-1]
    limits, work = limits_of(engine.device), work_of(engine, prepared, last)
    play, learn = median(one.play_s for one in taken), median(one.learn_s for one in taken)
    decode = shares[Part.DECODE] / sum(shares[part] for part in PLAYING) * play
    return {
        "episodes": config.batch_size,
        "prompt_tokens": sum(one.prompt_tokens for one in last.episodes),
        "sampled_tokens": last.sampled,
        "seconds": {"step": play + learn, "play": play, "learn": learn},
        "tokens_per_s": {"sampled": last.sampled / play, "learned": last.tokens / learn},
        "memory_mib": {"peak": peak, "estimated": engine.memory.mebibytes()},
        "shares": shares,
        "limits": limits,
        "share_of_limit": {
            "decoding, bytes": work["decoded_bytes"] / limits["bytes_per_s"] / decode,
            "learning, operations": work["learned_flops"] / limits["flops_per_s"] / learn,
        },
    }


def printed(found: dict[str, Any], indent: str = "") -> None:
    """Every figure on a line."""
    for name, value in found.items():
        if isinstance(value, dict):
            print(f"{indent}{name}")
            printed(value, indent + "  ")
        else:
            print(f"{indent}{name:<32} {value:,.4g}" if isinstance(value, float) else f"{indent}{name:<32} {value}")


def opened(workspace: Path, overrides: Sequence[str], *, smoke: bool) -> Run:
    """The published configuration; small enough for a CPU where there is nothing else."""
    return open_run(profile="prod", workspace=workspace, overrides=(*(SMOKE if smoke else ()), *overrides))


def main() -> None:
    """Measure, print, and on a GPU write down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=None, help="timed steps; default: 3, on a CPU 1")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the configuration")
    given = parser.parse_args()
    device = get_device()
    smoke = device.type != "cuda"
    if smoke:
        print(f"no GPU here ({device.type}): a smoke run of a narrowed shape. None of its figures is one of a GPU.\n")
    with tempfile.TemporaryDirectory() as folder:
        run = opened(Path(folder), given.set, smoke=smoke)
        found = measured(prepare_trial(run), given.steps or (1 if smoke else 3))
    chip = platform.processor() or platform.machine() if smoke else torch.cuda.get_device_name(device)
    found = {"device": chip, "base_model": run.config.base_model, "set": given.set, "random_weights": True, **found}
    printed(found)
    if not smoke:
        write_json(RESULTS, {"steps": given.steps or 3, "torch": torch.__version__, **found})


if __name__ == "__main__":
    main()
