"""RC1's engine `torch_ppo`, as training uses it, on a job: one turn an episode.

python ours.py JOB.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import fmean

import torch
from job import Job, Meter, reward

from rc1_lib.config.run_config import RunConfig
from rc1_lib.run import open_run
from rc1_lib.training.engines.torch_ppo import TorchPPO
from rc1_lib.training.setups import Setup
from rc1_lib.training.strategies.ppo import PPO


def configured(job: Job) -> RunConfig:
    """The job in the terms of profile `local`, whose other settings stay as they are shipped."""
    return open_run(
        profile="local",
        overrides=[
            f"batch_size={job.episodes}",
            f"rollout_len={job.response}",
            f"lr={job.lr}",
            f"clip={job.clip}",
            f"kl_coef={job.kl_coef}",
            f"training.update.epochs={job.epochs}",
            f"training.update.minibatches={job.minibatches}",
            f"training.rollout.temperature={job.temperature}",
            f"training.processes={job.processor_cores}",
            f"training.limits.tokens={job.response}",
            "training.limits.turns=1",
            "training.reward.judge=0",
            f"training.adapter.rank={job.rank}",
            f"training.adapter.alpha={job.alpha}",
            f"training.adapter.targets=[{', '.join(job.targets)}]",
        ],
    ).config


def main() -> None:
    """Train, and print what it took."""
    job = Job.read(sys.argv[1])
    config, rows = configured(job), [json.loads(line) for line in Path(job.rows).read_text().splitlines()]
    engine, strategy, meter, sampled, updates = TorchPPO(), PPO(), Meter(), list[int](), list[float]()
    engine.setup(Setup.of_run(config, job.base, seed=1))
    strategy.attach_engine(engine)
    for number in range(1 + job.steps):
        keys = [f"{place}" for place in range(len(rows))]
        # Behind the value head's warm-up, in which the adapter does not learn.
        batch = {"rows": rows, "keys": keys, "step": config.training.ppo.value_warm_up + number}
        strategy.on_batch(batch)
        batch["scores"] = reward(torch.tensor([one.ids[-1] for one in batch["trajectories"]])).tolist()
        learned = engine.train_step(batch)
        meter.mark()
        sampled.append(sum(one.own_tokens for one in batch["trajectories"]))
        updates.append(learned["update/steps"])
    print(meter.report(updates=fmean(updates), sampled_an_episode=fmean(sampled[1:]) / job.episodes))
    engine.close()


if __name__ == "__main__":
    main()
