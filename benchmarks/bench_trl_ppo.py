"""Episodes a second and peak memory of PPO: RC1's engine beside TRL's `PPOTrainer`, on one job in one run.

TRL dropped `PPOTrainer` behind 1.12, while RC1 stands on a later release, so TRL's side runs in an environment of its
own. Make it once, anywhere:

    python -m venv DIR && DIR/bin/pip install torch==2.13.0 transformers==5.23.0 peft==0.21.2 psutil trl==1.12.0

    python benchmarks/bench_trl_ppo.py DIR/bin/python                             # random weights, lengths all equal
    python benchmarks/bench_trl_ppo.py DIR/bin/python --model models/embedded --pool FILE.jsonl
    python benchmarks/bench_trl_ppo.py DIR/bin/python --prompt 48 --response 40 --episodes 256

Without DIR/bin/python nothing is run, which it says, and it ends with 77.

The model is the embedded base's shape with an adapter as training has it. An episode is one turn: all that `PPOTrainer`
knows. Without `--model` every prompt has `--prompt` tokens and every response `--response` (random weights end about
one response in fifty before that); with it the prompts are those of a pool's rows, and responses end where the base
ends them. Each trainer runs in a process of its own, pinned to the same cores, in turns; a first step of each is not
timed. Figures are medians of steps. TRL gets the fastest of several batch sizes, which a first round finds. Prints a
table, and writes `benchmarks/results/trl_ppo.json`, in which other jobs stay as they were.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent / "trl_ppo"))

from job import Job
from lacking import not_run

from rc1_lib.run import open_run
from rc1_lib.training.chat_format import ChatFormat
from rc1_lib.workspace.artifacts import PROJECT_ROOT, write_json

RESULTS = Path(__file__).parent / "results" / "trl_ppo.json"
SIDES = Path(__file__).parent / "trl_ppo"
EMBEDDED = PROJECT_ROOT / "models" / "embedded"
WORDS = ("one", "two", "three")
TRIED = ((1, 1), (2, 1), (4, 1), (2, 4), (2, 16))
"""What TRL is tried with: into how many calls of `generate` a step's episodes are divided, and into how many passes
with gradients. Where passes are smaller than minibatches it steps its optimizer once an epoch, which costs less."""
TRL = "torch==2.13.0 transformers==5.23.0 peft==0.21.2 psutil trl==1.12.0"


def random_base(folder: Path) -> None:
    """A model of the embedded base's shape and tokenizer that has learned nothing."""
    torch.manual_seed(0)
    for file in EMBEDDED.iterdir():
        if "token" in file.name or file.suffix == ".jinja":
            shutil.copy(file, folder)
    AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(EMBEDDED)).save_pretrained(folder)


def made_up_rows(count: int, prompt: int, form: ChatFormat) -> list[dict[str, Any]]:
    """Rows whose prompts have so many tokens, of words that are one each."""
    rng = random.Random(0)
    around = len(form.prompt_ids([{"role": "user", "content": WORDS[0]}])) - 1
    if prompt <= around:
        raise SystemExit(f"--prompt: found {prompt}, expected more than the {around} tokens around what is asked")
    return [_row(place, " ".join(rng.choices(WORDS, k=prompt - around))) for place in range(count)]


def _row(place: int, asked: str) -> dict[str, Any]:
    return {
        "id": f"row-{place}",
        "task": "gsm8k",
        "lang": "en",
        "bucket": "easy",
        "messages": [{"role": "user", "content": asked}],
        "passages": [],
        "answer": "384",
        "needs_clarification": False,
        "slot": None,
        "user_replies": {"gives": "", "otherwise": "I do not know."},
    }


def pool_rows(pool: str, count: int) -> list[dict[str, Any]]:
    """The first rows of a pool that the embedded base can read."""
    with Path(pool).open(encoding="utf-8") as lines:
        english = (row for row in map(json.loads, lines) if row["lang"] == "en")
        rows = [{**row, "bucket": row["recipe"]} for row in itertools.islice(english, count)]
    if len(rows) < count:
        raise SystemExit(f"{pool}: found {len(rows)} English rows, expected {count}; give a larger pool or --episodes")
    return rows


def opening(row: Mapping[str, Any]) -> list[Any]:
    """What stands before the assistant's first message."""
    return list(itertools.takewhile(lambda message: message["role"] != "assistant", row["messages"]))


def job_of(options: argparse.Namespace, folder: Path, cores: int) -> Job:
    """Write model, prompts and rows to a folder, and say what is to be done with them."""
    config = open_run(profile="local").config
    base = Path(options.model) if options.model else folder / "base"
    if not options.model:
        base.mkdir(exist_ok=True)
        random_base(base)
    form = ChatFormat(AutoTokenizer.from_pretrained(base))
    count = options.episodes
    rows = pool_rows(options.pool, count) if options.pool else made_up_rows(count, options.prompt, form)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "prompts.json").write_text(json.dumps([form.prompt_ids(opening(row)) for row in rows]))
    return Job(
        base=str(base.resolve()),
        prompts=str(folder / "prompts.json"),
        rows=str(folder / "rows.jsonl"),
        steps=options.steps,
        episodes=count,
        response=options.response,
        ends=bool(options.model),
        epochs=options.epochs,
        minibatches=config.training.update.minibatches,
        processor_cores=cores,
        temperature=config.training.rollout.temperature,
        lr=1e-5,  # so small that neither policy leaves what the other still is
        clip=config.clip,
        kl_coef=config.kl_coef,
        rank=config.training.adapter.rank,
        alpha=config.training.adapter.alpha,
        targets=list(config.training.adapter.targets),
    )


def once(interpreter: str, side: str, job: Path, cores: int, *arguments: int) -> dict[str, Any]:
    """One side's run, in a process of its own on so many cores."""
    mine = sorted(os.sched_getaffinity(0))[:cores]
    done = subprocess.run(
        ["taskset", "-c", ",".join(map(str, mine)), interpreter, SIDES / f"{side}.py", job, *map(str, arguments)],
        cwd=PROJECT_ROOT,
        env={**os.environ, "PYTHONPATH": str(PROJECT_ROOT), "OMP_NUM_THREADS": str(cores), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{side}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def compared(
    interpreter: str, job: Job, folder: Path, repeats: int, sizes: Sequence[tuple[int, int]]
) -> dict[str, Any]:
    """TRL's fastest batch sizes of some, where there is a choice, then both sides in turns."""
    cores, path = job.processor_cores, job.write(folder / "job.json")
    single = replace(job, steps=1).write(folder / "single.json")
    tried = {one: once(interpreter, "theirs", single, cores, *one) for one in sizes if len(sizes) > 1}
    best = min(sizes, key=lambda one: sum(tried[one]["cpu_seconds"]) if tried else 0)
    ours, theirs = [], []
    for _ in range(repeats):
        ours.append(once(sys.executable, "ours", path, cores))
        theirs.append(once(interpreter, "theirs", path, cores, *best))
    return {
        "tried": [{"batches": list(one), **found} for one, found in tried.items()],
        "sides": {"ours": summed(ours, job), "theirs": {"batches": list(best), **summed(theirs, job)}},
    }


def summed(runs: Sequence[Mapping[str, Any]], job: Job) -> dict[str, Any]:
    """Medians over the steps of all runs, and the most memory of any."""
    seconds = [each for run in runs for each in run["seconds"]]
    cpu_seconds = [each for run in runs for each in run["cpu_seconds"]]
    return {
        **runs[0],
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "episodes_per_second": round(job.episodes / median(seconds), 2),
        "episodes_per_cpu_second": round(job.episodes / median(cpu_seconds), 2),
        "peak_mib": max(run["peak_mib"] for run in runs),
    }


def told(name: str, sides: Mapping[str, Mapping[str, Any]]) -> None:
    """A table of one comparison."""
    print(f"{name:40}{'episodes/s':>12}{'a CPU second':>14}{'peak MiB':>10}")
    for side, label in (("ours", "RC1"), ("theirs", f"TRL, batches of {sides['theirs']['batches']}")):
        one = sides[side]
        print(
            f"{label:40}{one['episodes_per_second']:12.2f}{one['episodes_per_cpu_second']:14.2f}{one['peak_mib']:10}",
            flush=True,
        )
    keys = ("episodes_per_second", "episodes_per_cpu_second", "peak_mib")
    of_ours, of_cpu, memory = (sides["ours"][key] / sides["theirs"][key] for key in keys)
    print(f"{'ratio':40}{of_ours:12.2f}{of_cpu:14.2f}{memory:10.2f}", flush=True)


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line; `sizes` are the pairs of batch sizes that TRL is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("interpreter", nargs="?", help="of an environment that has TRL 1.12; without it nothing is run")
    parser.add_argument("--model", metavar="FOLDER", help="a model folder, on the prompts of --pool")
    parser.add_argument("--pool", metavar="FILE", help="rows of the pool's schema, as JSON lines")
    parser.add_argument("--prompt", type=int, default=96, help="tokens of a prompt, without --model")
    parser.add_argument("--response", type=int, default=128, help="tokens of a response at most")
    parser.add_argument("--episodes", type=int, default=128, help="of an update: a multiple of 4 minibatches")
    parser.add_argument("--epochs", type=int, default=1, help="passes over a step's episodes")
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--steps", type=int, default=2, help="timed steps of one run")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--batches", type=int, nargs=2, metavar=("GENERATED", "LEARNED"), help="TRL's, not tried out")
    options = parser.parse_args(arguments)
    if (options.model is None) != (options.pool is None):
        parser.error("--model and --pool go together")
    minibatches = open_run(profile="local").config.training.update.minibatches
    if options.episodes < 1 or options.episodes % minibatches:
        parser.error(f"--episodes: found {options.episodes}, expected a multiple of {minibatches} minibatches")
    divided = {
        (options.episodes // calls, options.episodes // passes)
        for calls, passes in TRIED
        if options.episodes % calls == options.episodes % passes == 0
    }
    options.sizes = [tuple(options.batches)] if options.batches else sorted(divided, reverse=True)
    if any(one < 1 or options.episodes % one for size in options.sizes for one in size):
        parser.error(f"--batches: found {options.batches}, expected two that divide {options.episodes} episodes")
    return options


def named(options: argparse.Namespace, cores: int) -> str:
    """What a comparison is called among the results."""
    what = f"{options.model}, own ends" if options.model else f"{options.prompt} + {options.response} tokens"
    many = "" if options.episodes == 128 else f"{options.episodes} episodes, "
    return f"{what}, {many}{options.epochs} epochs, {cores} cores"


def main(arguments: Sequence[str]) -> int:
    """Compare on one core and more, print the tables and keep the figures."""
    options = parsed(arguments)
    if options.interpreter is None:
        return not_run(
            "PPO beside TRL's PPOTrainer",
            "TRL dropped it behind 1.12, so it wants an environment of its own, and none was given",
            f"python -m venv DIR && DIR/bin/pip install {TRL} && python benchmarks/bench_trl_ppo.py DIR/bin/python",
        )
    interpreter = os.path.abspath(options.interpreter)  # not what it links to: that is no environment
    found = {one["name"]: one for one in json.loads(RESULTS.read_bytes())["jobs"]} if RESULTS.exists() else {}
    for cores in options.cores:
        name = named(options, cores)
        with tempfile.TemporaryDirectory() as folder:
            job = job_of(options, Path(folder), cores)
            found[name] = {"name": name, **compared(interpreter, job, Path(folder), options.repeats, options.sizes)}
        told(name, found[name]["sides"])
        write_json(RESULTS, {"jobs": [found[one] for one in sorted(found)]})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
