"""The price of a question: what one is worth where something is missing, and what it costs elsewhere.

The initial policy is played twice on the same prompts: it asks first, or it cannot ask. If a question gains no reward
where something is missing, never asking is as good as telling the two apart, and training will end there; if a question
costs nothing elsewhere, always asking is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from statistics import fmean
from typing import Any

from rc1_lib.checks import above, at_least, info
from rc1_lib.config.training import HELD_OUT_SEED
from rc1_lib.forecast.estimate import Estimate, mean_of
from rc1_lib.numbers.uncertainty import CONFIDENCE, CheckInterval
from rc1_lib.records import Check, MeasuredRow
from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.curriculum import missing_share
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.ppo_run import Prepared
from rc1_lib.training.rollout.asking import Asking
from rc1_lib.training.rollout.roll_out import Playground

TAKES = 4
"""Rollouts per prompt of a policy that asks first, and of one that never asks."""
STAGE = "price of a question"
GAIN = "reward that a question gains where something is missing"
COST = "reward that a question costs elsewhere"
RIGHT = "right answers that a question gains where something is missing"
PLAYED = "prompts that find the price of a question"
_MORE = "too few to find it: raise training.learnability.at_start, or give the pool more rows of this kind"
_ALWAYS_PAYS = "asking always is paid as well: raise overclar.alpha (with use_overclar_penalty)"
_NEVER_PAYS = (
    "never asking is paid as well: warm up longer (training.warm_start.steps), so that the policy can use the user's "
    "reply, or lower training.reward.turn"
)


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a policy that asks first, or never asks, does: means over episodes.

    Attributes:
        asked: questions per episode.
        penalised: those of them that a penalty counts where nothing is missing: at most `overclar.cap` per episode.
        right: share of right answers, solved or not.
        solved: share of solved episodes.
        reward: the training reward; a judge with weight counts as equal everywhere.
        unpriced: the reward without the penalty of needless questions.
    """

    asked: float
    penalised: float
    right: float
    solved: float
    reward: float
    unpriced: float


@dataclass(frozen=True, slots=True)
class Price:
    """What a question is worth to the initial policy.

    Attributes:
        gain: reward of asking first minus that of never asking where something is missing; None if fewer than two such
            prompts were played.
        cost: reward of never asking minus that of asking first where nothing is missing; None likewise.
        right: share of right answers, solved or not, of asking first minus that of never asking where something is
            missing; None likewise. The reward can rise without it, since a guess counts as solved after a question.
        used: the penalty of a needless question, `overclar.alpha`, or 0 if it is off.
        even: the penalty at which always asking and never asking are paid alike on the prompts of training: a policy
            that cannot tell them apart learns to ask always below it, never above it. None if unknown.
        missing_share: share of training's prompts in which something is missing.
        prompts: number of prompts of each kind that were played, `needed` and `elsewhere`.
        baselines: kind -> `asks first`, `never asks` -> what it does.
    """

    gain: Estimate | None
    cost: Estimate | None
    right: Estimate | None
    used: float
    even: float | None
    missing_share: float
    prompts: dict[str, int]
    baselines: dict[str, dict[str, Baseline]]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Prompt:
    """What both baselines did on one prompt."""

    needs: bool
    first: Baseline
    never: Baseline

    @property
    def gained(self) -> float:
        return self.first.reward - self.never.reward


def price_of_a_question(prepared: Prepared, player: PolicyEngine, rows: Sequence[MeasuredRow]) -> Price:
    """Play `rows` with the initial policy, asking first and never asking, and compare the rewards.

    Args:
        player: plays the initial policy with RC1's own sampler.
        rows: training rows.
    """
    config = prepared.run.config
    first, never = (_play(prepared, player, rows, asking) for asking in (Asking.FIRST, Asking.NEVER))
    prompts = [
        _Prompt(bool(row["needs_clarification"]), one, other)
        for row, one, other in zip(rows, first, never, strict=True)
    ]
    needed, elsewhere = ([one for one in prompts if one.needs is wanted] for wanted in (True, False))
    train, sampling = prepared.selection.train, prepared.run.config.priority_sampling
    kinds, share = {"needed": needed, "elsewhere": elsewhere}, missing_share(train, sampling)
    return Price(
        gain=mean_of([one.gained for one in needed]) if len(needed) > 1 else None,
        cost=mean_of([-one.gained for one in elsewhere]) if len(elsewhere) > 1 else None,
        right=mean_of([one.first.right - one.never.right for one in needed]) if len(needed) > 1 else None,
        used=config.overclar.alpha if config.use_overclar_penalty else 0.0,
        even=_even(share, needed, elsewhere),
        missing_share=share,
        prompts={kind: len(found) for kind, found in kinds.items()},
        baselines={
            kind: {
                "asks first": _mean([one.first for one in found]),
                "never asks": _mean([one.never for one in found]),
            }
            for kind, found in kinds.items()
            if found
        },
    )


def price_checks(price: Price) -> list[Check]:
    """Check that neither always asking nor never asking is paid as well as telling the two apart."""
    checks = []
    for name, kind, found, share, advice in (
        (GAIN, "needed", price.gain, price.missing_share, _NEVER_PAYS),
        (COST, "elsewhere", price.cost, 1 - price.missing_share, _ALWAYS_PAYS),
    ):
        if found is not None:
            checks.append(above(name, found.value, 0.0, advice, _interval(found, price.prompts[kind])))
        elif share:
            checks.append(at_least(f"{PLAYED}, {kind}", price.prompts[kind], 2, _MORE))
    if price.right is not None:
        found = price.right
        checks.append(info(RIGHT, f"{found.value:.3f} ({CONFIDENCE:.0%}: {found.low:.3f} to {found.high:.3f})"))
    return [
        *checks,
        info("penalty of a needless question", price.used),
        info("penalty at which always asking and never asking are paid alike", price.even and round(price.even, 4)),
    ]


def _interval(found: Estimate, prompts: int) -> CheckInterval:
    return CheckInterval(found.low, found.high, CONFIDENCE, prompts, "prompts")


def _play(prepared: Prepared, player: PolicyEngine, rows: Sequence[MeasuredRow], asking: Asking) -> list[Baseline]:
    """Return what the baseline did on each row."""
    repeated = [row for row in rows for _ in range(TAKES)]
    report_progress(STAGE, 0, len(repeated), f"asking: {asking}")
    played = player.play(
        repeated,
        [f"{row['id']}/price/{number % TAKES}" for number, row in enumerate(repeated)],
        temperature=player.temperature,
        seed=HELD_OUT_SEED,
        iteration=0,
        asking=[asking] * len(repeated),
    )
    report_progress(STAGE, len(repeated), len(repeated), f"asking: {asking}")
    playground = Playground(prepared.run.config, prepared.form)
    found = []
    for episode, row in zip(played, repeated, strict=True):
        did, terms = episode.outcome, playground.terms(episode, row, 0.0)
        counted = min(did.asked, prepared.run.config.overclar.cap)
        found.append(Baseline(did.asked, counted, did.right, did.solved, terms.total, terms.total + terms.penalty))
    return [_mean(found[at : at + TAKES]) for at in range(0, len(found), TAKES)]


def _mean(found: Sequence[Baseline]) -> Baseline:
    return Baseline(*(fmean(getattr(one, field.name) for one in found) for field in fields(Baseline)))


def _even(share: float, needed: Sequence[_Prompt], elsewhere: Sequence[_Prompt]) -> float | None:
    """Return the penalty at which a policy that asks always and one that never asks have the same mean reward.

    With the share q of prompts that lack something, the gain V there, and elsewhere the loss L of asking without the
    penalty p and A more penalised questions than without: q V = (1 - q) (L + p A).
    """
    if not needed or not elsewhere or share == 1.0:
        return None
    first, never = _mean([one.first for one in elsewhere]), _mean([one.never for one in elsewhere])
    more = first.penalised - never.penalised
    lost = never.unpriced - first.unpriced
    return None if more <= 0 else (share / (1 - share) * fmean(one.gained for one in needed) - lost) / more
