"""Compare RC1's engines with TRL's `GRPOTrainer` and `environment_factory`: episodes per second, memory, tokens.

    python benchmarks/bench_trl_environment.py --model real/checkpoints/sft --pool real/data/rollouts/FILE.jsonl
    python benchmarks/bench_trl_environment.py --model models/smollm2 --pool FILE.jsonl --equal
    python benchmarks/bench_trl_environment.py ... --passes 4 --recompute  # TRL's default: less memory

Without a model and a pool it runs nothing, says so, and ends with 77.

All sides play the same rows with equally many rollouts, weights, chat template, prompts (compared token by token),
limits on turns and tokens, adapter, learning rate, KL to the base, precision and cores, in RC1's environment with its
verified reward. A step is one step of the optimizer. TRL is used as documented, through `rc1_lib.environment.trl`. Each
side runs in a separate process, alternately; its first step is not timed.

With `--equal` an episode is one turn of the greatest length. For this, the output weights of the end-of-turn token,
which all sides load, are changed so that it is practically never sampled, which is checked. Otherwise turns end where
the policy ends them, and sides are also compared per token.

Prints a table, and writes `benchmarks/results/trl_environment.json`, which keeps the results of other jobs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import torch
from lacking import not_run
from transformers import AutoModelForCausalLM, AutoTokenizer

sys.path.insert(0, str(Path(__file__).parents[1]))

from rc1_lib.config.run_config import RunConfig
from rc1_lib.run import open_run
from rc1_lib.training.models import ALPHA_PER_RANK
from rc1_lib.workspace.artifacts import PROJECT_ROOT, write_json

RESULTS = Path(__file__).parent / "results" / "trl_environment.json"
OURS, THEIRS = ("torch_grpo", "torch_ppo"), "trl"
SEED = 1
TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + (message['content'] or '') }}"
    "{% for call in message['tool_calls'] or [] %}"
    "{{ '\n<tool_call>\n' + (call['function'] | tojson) + '\n</tool_call>' }}{% endfor %}"
    "{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""ChatML with tool calls and replies, as TRL requires. It does not describe the tools, since TRL and RC1 word that
differently, and prompts would differ in length; the policy knows the tools from its warm start."""


@dataclass(frozen=True)
class Job:
    """What all sides do.

    Attributes:
        base: folder of the model and its tokenizer.
        rows: the rows of each step, in the pool's schema.
        takes: number of episodes per row.
        settings: overrides of the configuration, for all sides.
        cores: number of cores that a side may use.
        equal: whether an episode is one turn that never ends by itself.
        passes: TRL's passes with gradients per step.
        recompute: whether TRL uses gradient checkpointing.
    """

    base: str
    rows: list[list[dict[str, Any]]]
    takes: int
    settings: list[str]
    cores: int
    equal: bool
    passes: int
    recompute: bool

    @property
    def episodes(self) -> int:
        """Number of episodes per step."""
        return len(self.rows[0]) * self.takes

    @property
    def config(self) -> RunConfig:
        """The configuration of profile `local` with the job's settings."""
        return open_run(profile="local", overrides=self.settings).config


class Meter:
    """Measures seconds, CPU seconds and tokens between the ends of steps, and peak memory."""

    def __init__(self) -> None:
        self._marks: list[tuple[float, float]] = []
        self._steps: list[dict[str, float]] = []

    def mark(self, **counted: float) -> None:
        """Record the end of a step and its counts, such as sampled tokens."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        self._marks.append((time.perf_counter(), used.ru_utime + used.ru_stime))
        self._steps.append(counted)

    def report(self) -> str:
        """Return one line of JSON with every step after the first."""
        pairs = zip(self._marks, self._marks[1:], self._steps[1:], strict=False)
        timed = [{"seconds": b[0] - a[0], "cpu_seconds": b[1] - a[1], **counted} for a, b, counted in pairs]
        # Not from getrusage, which includes the memory of the process that started this one.
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        assert found is not None, "Linux reports the peak memory of a process"
        return json.dumps({"steps": timed, "peak_mib": int(found[1]) // 1024})


def ours(job: Job, name: str) -> None:
    """Train with RC1's engine, in the steps of `rc1 train`."""
    # Imported here, as below, so that one side's imports do not count as the other's memory.
    from rc1_lib.training.api import Setup, make_engine
    from rc1_lib.training.strategies import Groups

    config, meter = job.config, Meter()
    engine, strategy = make_engine(name), Groups(None, job.takes)
    engine.setup(Setup.of_run(config, job.base, SEED))
    strategy.attach_engine(engine)
    for number, rows in enumerate(job.rows):
        # Past the steps in which only the value head learns, which do less work.
        step = config.training.ppo.value_warm_up + number
        batch: dict[str, Any] = {"rows": rows, "keys": [str(at) for at in range(len(rows))], "step": step}
        strategy.on_batch(batch)
        engine.train_step(batch)
        played = batch["trajectories"]
        sampled = sum(episode.action_count for episode in played)
        check_equal(job, [episode.action_count for episode in played], config.rollout_len)
        meter.mark(
            sampled=sampled,
            read=sum(len(episode.ids) for episode in played),
            turns=fmean(episode.outcome.turns for episode in played),
            reward=fmean(batch["scores"]),
        )
    print(meter.report())


def theirs(job: Job) -> None:
    """Train with TRL's trainer in RC1's environment, through its public interface."""
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer
    from trl.chat_template_utils import qwen3_schema, qwen3_template

    from rc1_lib.environment.rewards import RewardSettings
    from rc1_lib.environment.trl import environment_factory
    from rc1_lib.environment.turn import Limits
    from rc1_lib.extras.exports.reward import reward_function
    from rc1_lib.extras.exports.spec import WorldSpec

    config, meter = job.config, Meter()
    torch.set_num_threads(job.cores)
    tokenizer = AutoTokenizer.from_pretrained(job.base, padding_side="left")
    # TRL chooses the parser of replies by the text of known templates, and ours is not one of them.
    tokenizer.response_schema, tokenizer.response_template = qwen3_schema, qwen3_template
    pay = reward_function(WorldSpec("", Limits.of(config.training.limits), RewardSettings.of(config)))
    played: dict[str, float] = {}

    def dialogue_reward(**columns: Any) -> list[float]:
        paid: list[float] = pay(**columns)
        lengths = [len(ids) for ids in columns["completion_ids"]]
        check_equal(job, lengths, config.rollout_len)
        prompts = [len(prompt_ids(tokenizer, prompt)) for prompt in columns["prompts"]]
        spoken = [sum(message["role"] == "assistant" for message in said) for said in columns["completions"]]
        played.update(read=sum(lengths) + sum(prompts), turns=fmean(spoken), reward=fmean(paid))
        return paid

    class Marks(TrainerCallback):
        def on_log(self, *_: Any, logs: Mapping[str, float], **__: Any) -> None:
            if "completions/mean_length" in logs:  # which does not count the tools' replies
                meter.mark(sampled=round(logs["completions/mean_length"] * job.episodes), **played)

    training, adapter = config.training, config.training.adapter
    rows = [row | {"prompt": opening(row)} for step in job.rows for row in step]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # TRL warns that environments are experimental
        trainer = GRPOTrainer(
            model=AutoModelForCausalLM.from_pretrained(job.base, dtype=torch.float32),
            processing_class=tokenizer,
            args=GRPOConfig(
                output_dir=folder,
                max_steps=len(job.rows),
                per_device_train_batch_size=job.episodes // job.passes,
                gradient_accumulation_steps=job.passes,
                num_generations=job.takes,
                max_completion_length=training.limits.tokens,
                max_tool_calling_iterations=training.limits.turns - 1,
                generation_kwargs={"max_new_tokens": config.rollout_len},
                temperature=training.rollout.temperature,
                learning_rate=config.lr,
                lr_scheduler_type="constant",
                max_grad_norm=training.update.max_grad_norm,
                beta=config.kl_coef,
                epsilon=config.clip,
                loss_type="dapo",
                scale_rewards=training.grpo.scale_rewards,
                gradient_checkpointing=job.recompute,
                bf16=training.precision == "bf16",
                use_cpu=True,
                shuffle_dataset=False,
                logging_steps=1,
                save_strategy="no",
                report_to="none",
                disable_tqdm=True,
                seed=SEED,
            ),
            train_dataset=Dataset.from_list(rows),
            environment_factory=environment_factory(Limits.of(training.limits)),
            reward_funcs=dialogue_reward,
            peft_config=LoraConfig(
                r=adapter.rank, lora_alpha=ALPHA_PER_RANK * adapter.rank, target_modules=list(adapter.targets)
            ),
            callbacks=[Marks()],
        )
        trainer.train()
    print(meter.report())


def check_equal(job: Job, lengths: Sequence[int], expected: int) -> None:
    """Stop if a job with `--equal` has episodes of other lengths."""
    if job.equal and set(lengths) != {expected}:
        raise SystemExit(f"--equal: found episodes of {sorted(set(lengths))} tokens, expected all of {expected}")


def opening(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages before the assistant's first one."""
    first = next(at for at, message in enumerate(row["messages"]) if message["role"] == "assistant")
    return [{"role": message["role"], "content": message["content"]} for message in row["messages"][:first]]


def prompt_ids(tokenizer: Any, prompt: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the tokens that TRL makes of a prompt."""
    found: list[int] = tokenizer.apply_chat_template(list(prompt), add_generation_prompt=True, return_dict=False)
    return found


def base_of(model: Path, folder: Path, *, equal: bool) -> Path:
    """Copy the model with the template of this benchmark; with `equal` its turns do not end."""
    base = folder / "base"
    shutil.copytree(model, base)
    (base / "chat_template.jinja").write_text(TEMPLATE)
    tokenizer = AutoTokenizer.from_pretrained(base)
    tokenizer.chat_template = TEMPLATE  # in case the model has its template in another file
    tokenizer.save_pretrained(base)
    if equal:
        never_ending(AutoModelForCausalLM.from_pretrained(base), tokenizer).save_pretrained(base)
    return base


def never_ending(causal: Any, tokenizer: Any) -> Any:
    """Give the end-of-turn token a logit of about -100, by a least-squares fit over states of the model's own text."""
    ids = tokenizer(["A story of some length. What is 2 + 3?"] * 8, return_tensors="pt")
    torch.manual_seed(SEED)
    with torch.no_grad():
        said = causal.generate(
            **ids, do_sample=True, top_k=0, top_p=1.0, min_new_tokens=256, max_new_tokens=256, pad_token_id=0
        )
        states = causal(said, output_hidden_states=True).hidden_states[-1].flatten(0, 1).double()
        fit = torch.linalg.lstsq(states, torch.full((len(states), 1), -100.0, dtype=torch.float64), driver="gelsd")
        causal.get_output_embeddings().weight[tokenizer.eos_token_id] = fit.solution[:, 0].to(causal.dtype)
    return causal


def rows_of(pool: str, base: Path, options: argparse.Namespace) -> list[list[dict[str, Any]]]:
    """Return the rows of every step: the first English ones in the pool that are short enough, one per question."""
    from rc1_lib.training.chat_format import ChatFormat

    tokenizer, found = AutoTokenizer.from_pretrained(base), dict[str, dict[str, Any]]()
    form, wanted = ChatFormat(tokenizer), options.prompts * (1 + options.steps)
    with Path(pool).open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if len(found) == wanted:
                break
            if row["lang"] == "en" and len(form.dialogue_ids(row["messages"])[0]) <= options.longest:
                found.setdefault(row["source_id"], row | {"bucket": row["recipe"]})
    if len(found) < wanted:
        raise SystemExit(f"{pool}: found {len(found)} rows of at most {options.longest} tokens, expected {wanted}")
    for row in found.values():
        if form.prompt_ids(opening(row)) != prompt_ids(tokenizer, opening(row)):
            raise SystemExit(f"row '{row['id']}': RC1 and TRL tokenize its prompt differently, so nothing is compared")
    rows = list(found.values())
    return [rows[at : at + options.prompts] for at in range(0, wanted, options.prompts)]


def settings_of(options: argparse.Namespace) -> list[str]:
    """Return the job as overrides of the configuration."""
    episodes = options.prompts * options.takes
    return [
        f"batch_size={episodes}",
        f"rollout_len={options.response}",
        "lr=1.0e-5",  # so small that the sides' policies stay alike
        "training.strategy=groups",
        "training.engine=torch_grpo",
        f"training.update.group_size={options.takes}",
        "training.update.minibatches=1",
        f"training.update.micro_tokens={options.micro_tokens}",
        "training.rollout.temperature=1.0",
        f"training.limits.turns={1 if options.equal else options.turns}",
        f"training.limits.tokens={options.response if options.equal else options.tokens}",
        "training.reward.judge=0",
        f"training.precision={options.precision}",
        f"training.threads={options.cores}",
        "training.processes=1",
        "training.shards=1",
        *options.set,
    ]


def once(side: str, job: Path, cores: int) -> dict[str, Any]:
    """Run one side in a separate process on `cores` cores."""
    mine = sorted(os.sched_getaffinity(0))[:cores]
    done = subprocess.run(
        ["taskset", "-c", ",".join(map(str, mine)), sys.executable, __file__, "--side", side, "--job", job],
        cwd=PROJECT_ROOT,
        env={**os.environ, "OMP_NUM_THREADS": str(cores), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{side}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(f"  {side}: {json.dumps(found)}", file=sys.stderr, flush=True)
    return found


def summed(runs: Sequence[Mapping[str, Any]], episodes: int) -> dict[str, Any]:
    """Return medians over the steps of all runs, per episode and per token, and the peak memory of any run."""
    steps = [step for run in runs for step in run["steps"]]
    tokens = sum(step["sampled"] for step in steps)
    return {
        "episodes_per_second": episodes / median(step["seconds"] for step in steps),
        "episodes_per_cpu_second": episodes / median(step["cpu_seconds"] for step in steps),
        "tokens_per_cpu_second": tokens / sum(step["cpu_seconds"] for step in steps),
        "peak_mib": max(run["peak_mib"] for run in runs),
        "sampled_an_episode": tokens / len(steps) / episodes,
        "read_an_episode": fmean(step["read"] for step in steps) / episodes,
        "turns": fmean(step["turns"] for step in steps),
        "reward": fmean(step["reward"] for step in steps),
        "runs": list(runs),
    }


SHOWN = {
    "episodes_per_second": "episodes/s", "episodes_per_cpu_second": "a CPU second",
    "tokens_per_cpu_second": "tokens", "peak_mib": "peak MiB", "sampled_an_episode": "sampled",
    "read_an_episode": "read", "turns": "turns", "reward": "reward",
}  # fmt: skip


def print_table(name: str, sides: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the table of one comparison; `tokens` are those sampled and learned per CPU second."""
    print(f"{name}\n{'':24}" + "".join(f"{title:>14}" for title in SHOWN.values()))
    for side, found in sides.items():
        print(f"{side:24}" + "".join(f"{found[key]:14.3f}" for key in SHOWN))
    for side in [engine for engine in OURS if {engine, THEIRS} <= sides.keys()]:
        ratios = [sides[side][key] / sides[THEIRS][key] for key in list(SHOWN)[:4]]
        print(f"{side + ' / ' + THEIRS:24}" + "".join(f"{ratio:14.2f}" for ratio in ratios), flush=True)


def named(options: argparse.Namespace) -> str:
    """Return the name of a comparison in the results."""
    ends = "lengths all equal" if options.equal else "own ends"
    passes = f"TRL in {options.passes} passes{', recomputing' * options.recompute}"
    more = "".join(f", {override}" for override in options.set)
    return (
        f"{options.model.name}, {ends}, {options.prompts} rows x {options.takes} takes, {options.precision}, "
        f"{options.cores} cores, {passes}{more}"
    )


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="a model whose tokens include ChatML's marks")
    parser.add_argument("--pool", metavar="FILE", help="rows of the pool's schema, as JSON lines")
    parser.add_argument("--equal", action="store_true", help="one turn per episode, cut at its full length")
    parser.add_argument("--prompts", type=int, default=4, help="rows per step")
    parser.add_argument("--takes", type=int, default=4, help="episodes per row")
    parser.add_argument("--longest", type=int, default=448, help="most tokens of a row, with its demonstration")
    parser.add_argument("--response", type=int, default=128, help="most tokens of a turn")
    parser.add_argument("--turns", type=int, default=6, help="most turns of an episode")
    parser.add_argument("--tokens", type=int, default=448, help="most tokens of an episode, without its prompt")
    parser.add_argument("--micro-tokens", type=int, default=2048, help="RC1's limit on a pass with gradients")
    parser.add_argument("--passes", type=int, default=4, help="TRL's passes with gradients per step")
    parser.add_argument("--recompute", action="store_true", help="TRL uses gradient checkpointing, its default")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3, help="timed steps of one run")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=(*OURS, THEIRS), default=(OURS[0], THEIRS, OURS[1]))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a configuration key")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--job", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if (options.model is None) != (options.pool is None):
        parser.error("--model and --pool go together")
    if options.prompts * options.takes % options.passes:
        parser.error(
            f"--passes: found {options.passes}, expected a divisor of {options.prompts * options.takes} episodes"
        )
    return options


def main(arguments: Sequence[str]) -> int:
    """Compare, print the table and write the results."""
    options = parsed(arguments)
    if options.job:
        job = Job(**json.loads(options.job.read_bytes()))
        theirs(job) if options.side == THEIRS else ours(job, options.side)
        return 0
    if options.model is None:
        how = "make run-real SOURCES=DIR, then python benchmarks/bench_trl_environment.py --model FOLDER --pool FILE"
        return not_run("RC1's engines next to TRL's GRPOTrainer", "no model and rows were given", how)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        base = base_of(options.model, folder, equal=options.equal)
        job = Job(
            base=str(base), rows=rows_of(options.pool, base, options), takes=options.takes,
            settings=settings_of(options), cores=options.cores, equal=options.equal, passes=options.passes,
            recompute=options.recompute,
        )  # fmt: skip
        (folder / "job.json").write_text(json.dumps(asdict(job)))
        runs: dict[str, list[dict[str, Any]]] = {side: [] for side in options.only}
        for _ in range(options.repeats):
            for side in options.only:
                runs[side].append(once(side, folder / "job.json", options.cores))
    sides = {side: summed(found, job.episodes) for side, found in runs.items()}
    name = named(options)
    print_table(name, sides)
    kept = {job["name"]: job for job in json.loads(RESULTS.read_bytes())["jobs"]} if RESULTS.exists() else {}
    kept[name] = {"name": name, "sides": sides}
    write_json(RESULTS, {"jobs": [kept[job_name] for job_name in sorted(kept)]})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
