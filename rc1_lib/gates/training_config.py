"""The training configuration: no simulation, enough steps and seeds, and a sane KL target."""

from __future__ import annotations

from rc1_lib.checks import at_least, equal, info, within
from rc1_lib.config.run_config import RunConfig
from rc1_lib.environment.rewards import MALFORMED
from rc1_lib.gates.spec import GateSpec
from rc1_lib.records import Check, GateResult


def training_gate(config: RunConfig) -> GateResult:
    """Check the training settings against `gates.training`."""
    wanted = config.gates.training
    low, high = wanted.target_kl
    method = config.finetune.method
    checks = (
        equal("simulate", config.simulate, False, "set simulate: false"),
        equal("live_mode", config.live_mode, True, "set live_mode: true"),
        at_least(
            "steps", _least_steps(config), wanted.min_steps,
            "set steps to at least this, and training.early_stop.not_before too if a run may end early",
        ),
        within("target_kl", config.target_kl, low, high, "choose target_kl inside this range"),
        at_least("seeds", len(set(config.seeds)), wanted.min_seeds, "list more different seeds"),
        Check(
            "finetune.method", method, "within", ", ".join(wanted.methods), method in wanted.methods,
            f"set finetune.method to one of {', '.join(wanted.methods)}",
        ),
        equal(
            "seed_pool", config.seed_pool, config.difficulty.balanced_path,
            "train on the balanced pool: seed_pool must be difficulty.balanced_path",
        ),
        info("what training pays", order_of_pay(config)),
        info("mix", ", ".join(f"{task} {share:g}" for task, share in config.datasets.items())),
    )  # fmt: skip
    return GateResult("training_config", checks)


def order_of_pay(config: RunConfig) -> str:
    """Return what a solved episode earns at least, what a failed one earns, and what changes both.

    The configuration rejects turn penalties with which a solved episode would earn no more than a failed one.
    """
    reward = config.training.reward
    if not reward.success:
        return "only the judge's score, minus a penalty for every turn"
    least = reward.success * (1 - config.difficulty_beta) - reward.turn * config.training.limits.turns
    more = f"up to {reward.judge:g} more for the judge's score, " if reward.judge else ""
    prices = f"{config.overclar.alpha:g} less per needless question, {MALFORMED:g} less per malformed turn"
    return f"{least:.4g} or more if solved, 0 if failed or nothing was done; {more}{prices}"


def _least_steps(config: RunConfig) -> int:
    """Return the fewest steps that a successful run trains."""
    early = config.training.early_stop
    return config.steps if early.metric is None else min(config.steps, early.not_before)


SPEC = GateSpec(
    "training_config", "may this configuration train", ("config",), lambda e, _: training_gate(e.run.config)
)
