"""The cost of a training before it starts: hours, GPU-hours, judge calls and USD, each with an interval.

The pilot's steps represent all steps. They cannot predict how the policy changes: one that learns to say more takes
longer steps. The intervals only show how the pilot's own steps vary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rc1_lib.config.curriculum import Cap
from rc1_lib.evaluation.auditing import played_episodes
from rc1_lib.forecast.estimate import Estimate, exactly, mean_of
from rc1_lib.forecast.judge_cost import training_replies
from rc1_lib.forecast.judge_rates import JudgeRates
from rc1_lib.forecast.pilot import Pilot
from rc1_lib.run import Run

_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Bill:
    """The cost of something.

    Attributes:
        hours: of the clock.
        gpu_hours: the sum over the pilot's GPUs, whether busy or waiting for the judge; 0 on a CPU. A vLLM server's
            GPUs are not counted, since their number is not known here.
        judge_calls: to a paid judge.
        usd: for these calls.
    """

    hours: Estimate
    gpu_hours: Estimate
    judge_calls: Estimate
    usd: Estimate

    def __add__(self, other: Bill) -> Bill:
        """Both together."""
        return Bill(
            self.hours + other.hours,
            self.gpu_hours + other.gpu_hours,
            self.judge_calls + other.judge_calls,
            self.usd + other.usd,
        )

    def __mul__(self, times: float) -> Bill:
        """The cost multiplied by a number."""
        return Bill(self.hours * times, self.gpu_hours * times, self.judge_calls * times, self.usd * times)


def training_bill(run: Run, pilot: Pilot, rates: JudgeRates) -> Bill:
    """The cost of one seed's steps and of its evaluations on held-out rows, at the speed of a step's episodes.

    The judge is also asked about its baseline, once before every segment unless it seems to have changed.
    """
    steps = run.config.steps
    seconds = mean_of([step.seconds for step in pilot.steps])
    dialogues = mean_of([float(step.dialogues) for step in pilot.steps])
    hours = seconds * (steps / _HOUR) + _playing(run, pilot) * (_evaluation_episodes(run) / _HOUR)
    return _bill(hours, pilot, training_replies(run, dialogues), rates)


def evaluation_bill(run: Run, seeds: int, pilot: Pilot, rates: JudgeRates) -> Bill:
    """The cost of evaluating runs of this many seeds on the held-out prompts, at the speed of a step's episodes."""
    asked = exactly(run.config.training.held_out.judged_episodes(seeds) * run.config.judge.samples)
    return _bill(_playing(run, pilot) * (played_episodes(run, seeds) / _HOUR), pilot, asked, rates)


def _playing(run: Run, pilot: Pilot) -> Estimate:
    """Seconds of one episode."""
    return mean_of([step.playing / run.config.batch_size for step in pilot.steps])


def _evaluation_episodes(run: Run) -> int:
    """How many episodes `training.eval_shadow` plays: at every n-th step and at the last one."""
    look = run.config.training.eval_shadow
    return 0 if look.every_steps is None else math.ceil(run.config.steps / look.every_steps) * look.prompts


def _bill(hours: Estimate, pilot: Pilot, replies: Estimate, rates: JudgeRates) -> Bill:
    calls = replies * rates.calls
    return Bill(hours, hours * pilot.gpus, calls, calls * rates.usd)


@dataclass(frozen=True, slots=True)
class CapVerdict:
    """A limit of the cap compared with the expected cost of a seed's training.

    Attributes:
        words: a sentence.
        certain: whether even the lowest expected cost reaches it.
    """

    words: str
    certain: bool


def beside_cap(bill: Bill, steps: int, cap: Cap) -> list[CapVerdict]:
    """Every limit of the cap that the training of a seed may reach."""
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
