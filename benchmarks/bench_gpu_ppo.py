"""Measure whole PPO steps of a QLoRA policy on one GPU: seconds, tokens per second, memory, share of the chip's limits.

    python benchmarks/bench_gpu_ppo.py                    # on a GPU: Qwen3-4B's shape in NF4, 32 dialogues per step
    python benchmarks/bench_gpu_ppo.py --vllm ~/vllm-env/bin/python    # also measures sampling by vLLM
    python benchmarks/bench_gpu_ppo.py --only steps --steps 5 --set training.rollout.rows=64

The policy has random weights in the shape of the published base (`tests/training/random_base.py`), and goes through the
engine, rollouts and update of a real training. Random weights never end a turn, so every turn has `rollout_len` tokens.
The first step is not timed; seconds are medians of the others. One more step, which synchronizes with the device around
every part, shows what share each part has. The limits are measured on the same device: bytes per second by copying,
floating-point operations per second by matrix multiplication.

Each part is measured in a separate process, and its results are written before the next one starts: steps, then the
first turn of the same dialogues by transformers' `generate` and by a vLLM server of the base in bf16. If a part fails,
its last output is recorded, and the others go on. The bounds of `training.parity` do not end a step here; the measured
values are recorded next to the published bounds.

Without a GPU it does the same with an eighth of the width, four layers and eight short dialogues. This smoke run shows
that the script works, and nothing about a GPU; it ends with 77. On a GPU it writes `benchmarks/results/gpu_ppo.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from lacking import not_run

sys.path.insert(0, str(Path(__file__).parents[1]))

from rc1_lib.run import Run
from rc1_lib.training.base_model import base_config
from rc1_lib.training.checkpoint.save_load import save_checkpoint
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.curriculum import Curriculum
from rc1_lib.training.device import get_device
from rc1_lib.training.engines.torch_ppo import TorchPPO
from rc1_lib.training.memory import used_mb
from rc1_lib.training.models import model_section
from rc1_lib.training.ppo_run import Prepared, prepare
from rc1_lib.training.profiler import Section
from rc1_lib.training.rollout.roll_out import Playground
from rc1_lib.training.rollout.trajectory import Trajectory
from rc1_lib.training.usable import least_memory
from rc1_lib.training.vllm.server import Access, SampledTurn, Turn, connected
from rc1_lib.workspace.artifacts import write_json
from tests.training.random_base import random_run

RESULTS = Path(__file__).parent / "results" / "gpu_ppo.json"
SMOKE = (
    "batch_size=8", "rollout_len=16", "training.update.minibatches=2", "training.threads=1", "training.processes=1",
)  # fmt: skip
STEPS, GENERATE, SERVED = PARTS = ("steps", "generate", "vllm")
UNBOUND = 1e9
"""Value for `training.parity.mean` with which a step that rounds too much is measured instead of ended."""
START_S = 900.0
"""Most seconds that a server may take to start."""
PLAYING = (Section.READ, Section.DECODE, Section.DRAW, Section.WORLD)


@dataclass(frozen=True)
class Step:
    """Times and results of one step."""

    play_s: float
    learn_s: float
    episodes: list[Trajectory]
    metrics: dict[str, float]

    @property
    def sampled(self) -> int:
        """Number of sampled tokens."""
        return sum(episode.action_count for episode in self.episodes)

    @property
    def tokens(self) -> int:
        """Number of all tokens, which the reference reads and learning processes."""
        return sum(len(episode.ids) for episode in self.episodes)


def settled(device: torch.device) -> None:
    """Wait until the device has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def one_step(engine: TorchPPO, strategy: Any, batch: dict[str, Any]) -> Step:
    """Play and learn one step."""
    began = time.perf_counter()
    strategy.on_batch(batch)
    settled(engine.device)
    played = time.perf_counter()
    metrics = engine.train_step(batch)
    settled(engine.device)
    return Step(played - began, time.perf_counter() - played, batch["trajectories"], metrics)


def shares_of(engine: TorchPPO, step: Callable[[], Step]) -> dict[str, float]:
    """Return the share of each part in a step that synchronizes with the device around every part."""
    engine.start_timing()
    took = step()
    (kept,) = engine.timings()
    whole = took.play_s + took.learn_s
    shares = {
        str(section): sum(span.ended - span.began for span in kept if span.section is section) / whole
        for section in Section
    }
    return {**shares, "everything else": 1 - sum(shares.values())}


def best_s(work: Callable[[], object], device: torch.device, repeats: int = 5) -> float:
    """Return the seconds of the fastest of several repeats, after one that is not timed."""
    seconds = []
    for _ in range(1 + repeats):
        settled(device)
        began = time.perf_counter()
        work()
        settled(device)
        seconds.append(time.perf_counter() - began)
    return min(seconds[1:])


def limits_of(device: torch.device) -> dict[str, float]:
    """Measure the most bytes and floating-point operations per second that this device reaches."""
    gpu = device.type == "cuda"
    number, side, dtype = (2**30, 8192, torch.bfloat16) if gpu else (2**26, 1024, torch.float32)
    source = torch.ones(number, dtype=torch.uint8, device=device)
    target, square = torch.empty_like(source), torch.ones((side, side), dtype=dtype, device=device)
    copied = best_s(lambda: target.copy_(source), device)
    multiplied = best_s(lambda: square @ square, device)
    return {"bytes_per_s": 2 * number / copied, "flops_per_s": 2 * side**3 / multiplied}


def work_of(engine: TorchPPO, prepared: Prepared, step: Step) -> dict[str, float]:
    """Return the least work of the step: bytes that decoding must read, operations that learning must do.

    A decoding step reads every weight in the precision used for sampling, and the keys and values of the active rows.
    Learning multiplies the tokens with the matrices once for the reference, once forward, once backward (frozen weights
    need no gradients), once more with gradient checkpointing, and once more if a copy of the weights sampled them.
    Logits are needed only for sampled tokens.
    """
    section = model_section(prepared.run.config, prepared.reference.base)
    shape = base_config(section).get_text_config()
    least, width = least_memory(prepared.setup(1), shape, engine.device), 4 if engine.device.type == "cpu" else 2
    per_token = 2 * shape.num_hidden_layers * shape.num_key_value_heads * shape.head_dim * width
    rows = prepared.run.config.training.rollout.rows
    most = max(episode.action_count for episode in step.episodes)
    passes = -(-len(step.episodes) // rows) * most
    head = shape.vocab_size * shape.hidden_size
    linear = sum(
        layer.in_features * layer.out_features
        for name, layer in engine.policy.causal.named_modules()
        if name.rpartition(".")[2] in section.lora.target_modules and hasattr(layer, "in_features")
    )
    copied = least["their copy to sample with"]
    again = int(copied > 0)
    times = 3 + prepared.run.config.training.gradient_checkpointing + again
    return {
        "decoded_bytes": passes * (copied + head * width if copied else least["weights"])
        + sum(episode.action_count * len(episode.ids) for episode in step.episodes) * per_token,
        "learned_flops": 2.0 * (times * linear * step.tokens + (3 + again) * head * step.sampled),
    }


def batches_of(prepared: Prepared) -> Curriculum:
    """Return the rows of the steps, the same for every part."""
    config = prepared.run.config
    return Curriculum(prepared.selection.train, config.priority_sampling, config.prompts, config.seeds[0])


def unbound(prepared: Prepared) -> Prepared:
    """Remove the bounds of parity; the measured values are among the results."""
    config = prepared.run.config
    parity = config.training.parity.model_copy(update={"mean": UNBOUND, "far_share": 1.0})
    training = config.training.model_copy(update={"parity": parity})
    return replace(prepared, run=replace(prepared.run, config=config.model_copy(update={"training": training})))


def engine_of(prepared: Prepared) -> TorchPPO:
    """Set up the engine of a training."""
    engine = TorchPPO()
    engine.setup(unbound(prepared).setup(prepared.run.config.seeds[0]))
    return engine


def checkpoint_of(engine: TorchPPO, folder: Path, step_s: float, every: int) -> dict[str, float]:
    """Measure the time to write a checkpoint, and its share of the time between two checkpoints."""
    state = engine.state_dict()
    flat = {name: state.pop(name) for name in ("adapter", "value_head")}
    began = time.perf_counter()
    written = save_checkpoint(CheckpointState(flat, {"step": 1}, state), folder / "checkpoints", folder / "ledger")
    seconds = time.perf_counter() - began
    size = sum(path.stat().st_size for path in written.iterdir())
    return {"seconds": seconds, "mib": size / 2**20, "share_of_steps": seconds / (every * step_s + seconds)}


def measured(prepared: Prepared, steps: int, folder: Path) -> dict[str, Any]:
    """Measure steps, memory, limits, parity and checkpoints of one policy."""
    config, seed = prepared.run.config, prepared.run.config.seeds[0]
    strategy, engine = prepared.strategy(seed), engine_of(prepared)
    strategy.attach_engine(engine)
    batches, number = batches_of(prepared), 0

    def step() -> Step:
        nonlocal number
        number += 1
        return one_step(engine, strategy, batches.next() | {"step": number - 1})

    step()
    taken = [step() for _ in range(steps)]
    peak, shares, last = used_mb(), shares_of(engine, step), taken[-1]
    limits, work = limits_of(engine.device), work_of(engine, prepared, last)
    play, learn = median(timed.play_s for timed in taken), median(timed.learn_s for timed in taken)
    decode = shares[Section.DECODE] / sum(shares[part] for part in PLAYING) * play
    bounds, every = config.training.parity, config.training.checkpoints.every_steps
    return {
        "episodes": config.batch_size,
        "prompt_tokens": sum(episode.prompt_tokens for episode in last.episodes),
        "sampled_tokens": last.sampled,
        "seconds": {"step": play + learn, "play": play, "learn": learn},
        "tokens_per_s": {"sampled": last.sampled / play, "learned": last.tokens / learn},
        "memory_mib": {"peak": peak},
        "shares": shares,
        "limits": limits,
        "share_of_limit": {
            "decoding, bytes": work["decoded_bytes"] / limits["bytes_per_s"] / decode,
            "learning, operations": work["learned_flops"] / limits["flops_per_s"] / learn,
        },
        "parity": {
            "mean": max(timed.metrics["policy/sampling_gap"] for timed in taken),
            "bound of mean": bounds.mean,
            "far": max(timed.metrics["policy/sampling_far"] for timed in taken),
            "bound of far": bounds.far_share,
        },
        "updates": min(timed.metrics["update/steps"] for timed in taken),
        "updates configured": config.training.update.minibatches,
        "checkpoint": checkpoint_of(engine, folder, play + learn, every),
    }


def prompts_of(prepared: Prepared) -> list[list[int]]:
    """Return the prompts of the first step's dialogues as token ids."""
    batch, playground = batches_of(prepared).next(), Playground(prepared.run.config, prepared.form)
    starts = [playground.start(row, key) for row, key in zip(batch["rows"], batch["keys"], strict=True)]
    return [prepared.form.prompt_ids(start.episode.messages) for start in starts]


def turns_of(prompts: Sequence[Sequence[int]], length: int, seconds: float) -> dict[str, Any]:
    """Return the results of one turn of every dialogue."""
    sampled = len(prompts) * length
    return {
        "episodes": len(prompts),
        "prompt_tokens": sum(map(len, prompts)),
        "sampled_tokens": sampled,
        "seconds": seconds,
        "tokens_per_s": sampled / seconds,
    }


def generated(prepared: Prepared, tries: int) -> dict[str, Any]:
    """Measure one turn of every dialogue by transformers' `generate`, with the weights that steps sample with."""
    config, prompts, engine = prepared.run.config, prompts_of(prepared), engine_of(prepared)
    causal, length, widest = engine.policy.causal, config.rollout_len, max(map(len, prompts))
    ids = torch.full((len(prompts), widest), prepared.form.pad_id)
    for place, prompt in enumerate(prompts):
        ids[place, widest - len(prompt) :] = torch.tensor(prompt)
    mask = (torch.arange(widest) >= torch.tensor([widest - len(prompt) for prompt in prompts])[:, None]).long()
    engine.policy.train(False)

    def work() -> None:
        written = causal.generate(
            input_ids=ids.to(engine.device), attention_mask=mask.to(engine.device), use_cache=True, do_sample=True,
            temperature=engine.temperature, top_k=0, top_p=1.0, min_new_tokens=length, max_new_tokens=length,
            pad_token_id=prepared.form.pad_id,
        )  # fmt: skip
        assert written.shape[1] == widest + length, f"{written.shape[1] - widest} tokens, expected {length}"

    half = torch.autocast(engine.device.type, dtype=engine.precision.dtype, enabled=engine.device.type != "cpu")
    with torch.inference_mode(), half:
        seconds = best_s(work, engine.device, tries)
    return turns_of(prompts, length, seconds) | {"memory_mib": {"peak": used_mb()}}


@contextmanager
def serving(python: str, base: Path, longest: int, device: torch.device) -> Iterator[str]:
    """Start a vLLM server of a base on this machine, and yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    slow = ["--enforce-eager", "--no-enable-chunked-prefill", "--max-num-batched-tokens", "8192", "--dtype", "float32"]
    fitting = slow if device.type == "cpu" else ["--dtype", "bfloat16"]
    command = [
        python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(base), "--host", "127.0.0.1",
        "--port", str(port), "--max-model-len", str(longest), *fitting,
    ]  # fmt: skip
    settings = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    with (base.parent / "vllm.log").open("wb") as log:
        process = subprocess.Popen(command, env={**os.environ, **settings}, stdout=log, stderr=subprocess.STDOUT)
    try:
        began = time.monotonic()
        while not _answers(f"http://127.0.0.1:{port}/health"):
            if process.poll() is not None or time.monotonic() - began > START_S:
                last = (base.parent / "vllm.log").read_text(errors="replace").strip().splitlines()[-5:]
                raise RuntimeError(f"vLLM did not start: {' / '.join(last)}")
            time.sleep(1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def sampled_by_vllm(prepared: Prepared, python: str, tries: int) -> dict[str, Any]:
    """Measure one turn of every dialogue by a vLLM server of the base, in bf16 and without an adapter."""
    config, prompts, base = prepared.run.config, prompts_of(prepared), Path(prepared.reference.base)
    length, vocabulary = config.rollout_len, base_config(model_section(config, str(base))).get_text_config().vocab_size

    async def all_turns(address: str) -> list[SampledTurn]:
        async with connected(Access(address, address, 600.0, 1, None)) as server:
            name = (await server.served()).name
            turns = [Turn(prompt, length, None, 1.0, seed) for seed, prompt in enumerate(prompts)]
            return await asyncio.gather(*(server.sample(name, turn, vocabulary) for turn in turns))

    with serving(python, base, max(map(len, prompts)) + length, get_device()) as address:
        seconds = best_s(lambda: asyncio.run(all_turns(address)), torch.device("cpu"), tries)
    return turns_of(prompts, length, seconds)


def printed(found: dict[str, Any], indent: str = "") -> None:
    """Print every value on a line."""
    for name, value in found.items():
        if isinstance(value, dict):
            print(f"{indent}{name}")
            printed(value, indent + "  ")
        else:
            print(f"{indent}{name:<32} {value:,.4g}" if isinstance(value, float) else f"{indent}{name:<32} {value}")


def opened(workspace: Path, overrides: Sequence[str], *, smoke: bool) -> Run:
    """Open a run with the published configuration, made small for a CPU if `smoke`."""
    if smoke:
        return random_run(workspace, *SMOKE, *overrides, narrower=8, layers=4)
    return random_run(workspace, *overrides)


def part_of(name: str, run: Run, steps: int, vllm: str | None, folder: Path) -> dict[str, Any]:
    """Measure one part."""
    prepared = prepare(run)
    if name == SERVED:
        assert vllm is not None, "--only vllm needs --vllm"
        return sampled_by_vllm(prepared, vllm, steps)
    return generated(prepared, steps) if name == GENERATE else measured(prepared, steps, folder)


def in_a_process(name: str, given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Measure one part in a separate process, so that a crash or memory it leaves does not affect the others."""
    target = folder / f"{name}.json"
    more = ["--vllm", given.vllm] if given.vllm else []
    settings = [part for override in given.set for part in ("--set", override)]
    command = [sys.executable, __file__, "--only", name, "--to", str(target), "--workspace", str(folder), *more]
    done = subprocess.run([*command, "--steps", str(given.steps), *settings], stderr=subprocess.PIPE, text=True)
    if done.returncode == 0:
        return dict(json.loads(target.read_text()))
    return {"failed": " / ".join(done.stderr.strip().splitlines()[-3:])}


def main() -> int:
    """Measure, print, and on a GPU write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=None, help="timed steps; default: 3, on a CPU 1")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a configuration key")
    parser.add_argument("--vllm", metavar="PYTHON", help="the Python of an environment that has vLLM")
    parser.add_argument("--only", choices=PARTS, help="only this part; results are not written")
    parser.add_argument("--to", type=Path, help="with --only: a file for its results")
    parser.add_argument("--workspace", type=Path, help="folder for base and rows; default: a temporary one")
    given = parser.parse_args()
    device = get_device()
    smoke = device.type != "cuda"
    given.steps = given.steps or (1 if smoke else 3)
    if smoke and given.to is None:
        print(f"no GPU ({device.type}): a smoke run of a narrowed shape. Its results say nothing about a GPU.\n")
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.workspace or Path(temporary)
        if given.only:
            run = opened(folder, given.set, smoke=smoke)
            found = part_of(given.only, run, given.steps, given.vllm, folder)
            if given.to:
                write_json(given.to, found)
            else:
                printed(found)
            return 0
        run = opened(folder, given.set, smoke=smoke)
        chip = platform.processor() or platform.machine() if smoke else torch.cuda.get_device_name(device)
        about = {"device": chip, "base_model": run.config.base_model, "set": given.set, "random_weights": True}
        about |= {"steps": given.steps, "torch": torch.__version__}
        parts = dict[str, Any]()
        for name in PARTS:
            if name == SERVED and not given.vllm:
                parts[name] = {"left out": "no --vllm"}
            else:
                parts[name] = in_a_process(name, given, folder)
            printed({name: parts[name]})
            if not smoke:  # at once, since the next part may be interrupted
                write_json(RESULTS, {**about, "parts": parts})
    if any("failed" in part for part in parts.values()):
        return 1
    if smoke:
        how = "python benchmarks/bench_gpu_ppo.py, on a machine with a GPU"
        return not_run("PPO steps of Qwen3-4B's shape on a GPU", "there is no GPU; the above is a smoke run", how)
    return 0


if __name__ == "__main__":
    sys.exit(main())
