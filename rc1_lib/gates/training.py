"""The training configuration: no simulation, enough steps and seeds, a sane KL target, the penalty switched on."""

from __future__ import annotations

from rc1_lib.checks import at_least, equal, info, within
from rc1_lib.config.run_config import RunConfig
from rc1_lib.environment.outcome import EpisodeOutcome, EpisodeStatus
from rc1_lib.environment.rewards import RewardSettings, reward_terms
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
    prices = f"{config.overclar.alpha:g} less per needless question, {reward.malformed:g} less per malformed turn"
    return f"{least:.4g} or more if solved, 0 if failed or nothing was done; {more}{prices}"


def _least_steps(config: RunConfig) -> int:
    """Return the fewest steps that a successful run trains."""
    early = config.training.early_stop
    return config.steps if early.metric is None else min(config.steps, early.not_before)


def penalty_gate(config: RunConfig) -> GateResult:
    """Check that the over-clarification penalty is on, and that training's own reward takes exactly its price.

    Two right episodes that differ only in the number of questions are rewarded as in training. No question is free, one
    and two cost as much as configured, five no more than the cap, and needed ones nothing.
    """
    alpha, cap = config.overclar.alpha, config.overclar.cap
    checks = (
        equal("use_overclar_penalty", config.use_overclar_penalty, True, "set use_overclar_penalty: true"),
        equal("alpha is positive", alpha > 0, True, "set overclar.alpha above 0 (0.07 is usual)"),
        *(_priced(config, asked, needs=False, wanted=alpha * min(asked, cap)) for asked in (1, 2, 5)),
        _priced(config, 5, needs=True, wanted=0.0),
        info("alpha", alpha),
        info("cap", cap),
    )
    return GateResult("overclar_penalty", checks)


def _priced(config: RunConfig, asked: int, *, needs: bool, wanted: float) -> Check:
    """Check that so many questions cost what they should, up to the last bits of a difference of sums."""
    name = f"price of {asked} {'needed' if needs else 'needless'} questions"
    price, wanted = round(_price(config, asked, needs), 9), round(wanted, 9)
    advice = "set use_overclar_penalty: true; if it is, the reward does not do what its settings say"
    return Check(name, price, "==", wanted, price == wanted, advice)


def _price(config: RunConfig, asked: int, needs: bool) -> float:
    """Return by how much the reward of a right episode falls with so many questions."""

    def reward(questions: int) -> float:
        outcome = EpisodeOutcome(
            status=EpisodeStatus.ANSWERED, answer="", right=True, needs=needs, obtained=needs, asked=questions,
            off_target=0, turns=1, hops=0, tool_errors=0, malformed=0, tokens=0,
        )  # fmt: skip
        return reward_terms(outcome, "medium", RewardSettings.of(config), judged=1.0).total

    return reward(0) - reward(asked)
