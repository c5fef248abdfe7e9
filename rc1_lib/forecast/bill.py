"""Estimate the cost of a training before it starts: hours, GPU-hours, judge calls and USD, each with an interval.

A pilot runs a few timed steps, which represent all steps, and discards what was learned. It cannot predict how the
policy changes: a policy that learns to say more takes longer steps. The intervals only show how the pilot's steps vary.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import polars as pl

from rc1_lib.config.curriculum import Cap
from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.auditing import played_episodes
from rc1_lib.forecast.estimate import NOTHING, Estimate, exactly, mean_of
from rc1_lib.forecast.judge_cost import training_replies
from rc1_lib.judge.calls import ANSWERED, AttemptOutcome
from rc1_lib.judge.judge import open_store
from rc1_lib.judge.prompt import dialogue_sha256
from rc1_lib.judge.providers import LIVE
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.device import get_device
from rc1_lib.training.dry_run import dry_run
from rc1_lib.training.episode_judge import REPLIES
from rc1_lib.training.ppo_run import Prepared
from rc1_lib.training.ranks.processes import gpus_of
from rc1_lib.training.registry import make_engine

STAGE = "pilot"
_HOUR = 3600.0
_LAST = 2000
"""Number of recent paid replies that count, since a model's prices and habits change."""
_FEWEST = 2


@dataclass(frozen=True, slots=True)
class PilotStep:
    """The cost of a step.

    Attributes:
        seconds: duration of the step.
        playing: seconds of it for playing and judging the episodes.
        dialogues: number of distinct dialogues that were played and judged; 0 if the step learned from the pool's.
    """

    seconds: float
    playing: float
    dialogues: int


@dataclass(frozen=True, slots=True)
class Pilot:
    """The result of a pilot.

    Attributes:
        steps: the timed steps, without the warm-up step.
        device: torch's type of the device, such as `cuda`.
        gpus: number of GPUs, one for each process that shared the steps; 0 on a CPU.
    """

    steps: tuple[PilotStep, ...]
    device: str
    gpus: int


def run_pilot(prepared: Prepared, seed: int, steps: int) -> Pilot:
    """Run one warm-up step and `steps` timed ones. A live judge is asked, and its replies are stored."""
    engine = make_engine(prepared.run.config.training.engine)
    timed: list[PilotStep] = []
    with dry_run(prepared, seed, engine) as run:
        for number in range(steps + 1):
            report_progress(STAGE, number, steps + 1, "to warm up" if number == 0 else "")
            batch = run.next_batch()
            began = time.perf_counter()
            run.strategy.on_batch(batch)
            played = time.perf_counter()
            engine.train_step(batch)
            dialogues = len({dialogue_sha256(episode.messages) for episode in batch.get("trajectories", ())})
            timed.append(PilotStep(time.perf_counter() - began, played - began, dialogues))
    report_progress(STAGE, steps + 1, steps + 1)
    return Pilot(tuple(timed[1:]), get_device().type, gpus_of(prepared.run.config.training))


@dataclass(frozen=True, slots=True)
class JudgeRates:
    """Rates of the configured judge.

    Attributes:
        calls: calls per valid reply.
        usd: USD per call.
    """

    calls: Estimate
    usd: Estimate


def judge_rates(run: Run) -> JudgeRates:
    """Return the rates of the configured judge; 0 for a free one.

    Raises:
        RC1Error: when a live judge has no paid replies about episodes yet.
    """
    judge = run.config.judge
    if judge.provider not in LIVE or not run.config.training.pays_judge:
        return JudgeRates(NOTHING, NOTHING)
    if not judge.prices.known:
        raise RC1Error("judge.prices is not set, so the judge's cost is unknown; set its `input` and `output`")
    with open_store(run, f"{run.config.training.reward.scores}/{REPLIES}") as store:
        log = store.log()
    own = log.filter(pl.col("provider") == judge.provider, pl.col("model_asked") == (judge.model or ""))
    answered = pl.col("outcome").is_in([str(outcome) for outcome in ANSWERED])
    paid = own.filter(answered, pl.col("cost_usd").is_not_null())
    return rates_of(paid.tail(_LAST))


def rates_of(paid: pl.DataFrame) -> JudgeRates:
    """Compute the rates from log lines of paid replies.

    Raises:
        RC1Error: when there are too few.
    """
    good = paid.filter(pl.col("outcome") == AttemptOutcome.OK.value).height
    if paid.height < _FEWEST or not good:
        raise RC1Error(
            f"the usage log has {paid.height} replies about episodes by the configured judge, {good} of them valid; "
            f"expected at least {_FEWEST}, so its cost is unknown; run the pilot while the judge answers"
        )
    return JudgeRates(exactly(paid.height / good), mean_of(paid["cost_usd"].to_list()))


@dataclass(frozen=True, slots=True)
class Bill:
    """The cost of a part of a training.

    Attributes:
        hours: hours of wall-clock time.
        gpu_hours: summed over the pilot's GPUs, whether busy or waiting for the judge; 0 on a CPU. The GPUs of a vLLM
            server are not counted, since their number is not known here.
        judge_calls: calls to a paid judge.
        usd: cost of these calls in USD.
    """

    hours: Estimate
    gpu_hours: Estimate
    judge_calls: Estimate
    usd: Estimate

    def __add__(self, other: Bill) -> Bill:
        """Return the cost of both."""
        return Bill(
            self.hours + other.hours,
            self.gpu_hours + other.gpu_hours,
            self.judge_calls + other.judge_calls,
            self.usd + other.usd,
        )

    def __mul__(self, times: float) -> Bill:
        """Return `times` this cost."""
        return Bill(self.hours * times, self.gpu_hours * times, self.judge_calls * times, self.usd * times)


def training_bill(run: Run, pilot: Pilot, rates: JudgeRates) -> Bill:
    """Estimate the cost of one seed's steps and evaluations on held-out rows, played as fast as a step's episodes.

    The judge's baseline is included, one measurement before every segment; more are needed if it seems to have changed.
    """
    steps = run.config.steps
    seconds = mean_of([step.seconds for step in pilot.steps])
    dialogues = mean_of([float(step.dialogues) for step in pilot.steps])
    hours = seconds * (steps / _HOUR) + _playing(run, pilot) * (_evaluation_episodes(run) / _HOUR)
    return _bill(hours, pilot, training_replies(run, dialogues), rates)


def evaluation_bill(run: Run, seeds: int, pilot: Pilot, rates: JudgeRates) -> Bill:
    """Estimate the cost of evaluating `seeds` runs on the held-out prompts, played as fast as a step's episodes."""
    asked = exactly(run.config.training.held_out.judged_episodes(seeds) * run.config.judge.samples)
    return _bill(_playing(run, pilot) * (played_episodes(run, seeds) / _HOUR), pilot, asked, rates)


def _playing(run: Run, pilot: Pilot) -> Estimate:
    """Return the seconds of one episode."""
    return mean_of([step.playing / run.config.batch_size for step in pilot.steps])


def _evaluation_episodes(run: Run) -> int:
    """Return the number of episodes that `training.eval_shadow` plays, at every n-th step and at the last one."""
    shadow = run.config.training.eval_shadow
    return 0 if shadow.every_steps is None else math.ceil(run.config.steps / shadow.every_steps) * shadow.prompts


def _bill(hours: Estimate, pilot: Pilot, replies: Estimate, rates: JudgeRates) -> Bill:
    calls = replies * rates.calls
    return Bill(hours, hours * pilot.gpus, calls, calls * rates.usd)


@dataclass(frozen=True, slots=True)
class CapVerdict:
    """A limit of the cap that the training of a seed may reach.

    Attributes:
        words: a sentence about it.
        certain: whether even the low end of the expected cost reaches it.
    """

    words: str
    certain: bool


def cap_verdicts(bill: Bill, steps: int, cap: Cap) -> list[CapVerdict]:
    """Return a verdict for every limit of the cap that the training of a seed may reach."""
    found = []
    for name, most, expected in (("hours", cap.hours, bill.hours), ("usd", cap.usd, bill.usd)):
        if most is None or expected.high < most:
            continue
        certain = expected.low >= most
        at = int(steps * most / expected.value)
        where = f"at about step {at:,} of {steps:,}" if at < steps else "close to its end"
        found.append(
            CapVerdict(
                f"training.cap.{name} is {most:g}: a seed's run {'will' if certain else 'may'} pause there, {where}",
                certain,
            )
        )
    return found
