"""The over-clarification penalty is on, and training takes exactly its price."""

from __future__ import annotations

from rc1_lib.checks import equal, info
from rc1_lib.config.run_config import RunConfig
from rc1_lib.environment.outcome import EpisodeOutcome, EpisodeStatus
from rc1_lib.environment.rewards import RewardSettings, reward_terms
from rc1_lib.gates.spec import GateSpec
from rc1_lib.records import Check, GateResult


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


SPEC = GateSpec("overclar_penalty", "does needless asking cost", ("config",), lambda e, _: penalty_gate(e.run.config))
