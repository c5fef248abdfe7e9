"""The bill of a training before it starts: hours, GPU-hours, calls of the judge and USD, each with an interval.

A pilot's steps stand for all of them. What they cannot know is how the policy changes: one that learns to say more
takes longer steps. The intervals tell how the pilot's own steps vary, and no more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rc1_lib.config.curriculum import Cap
from rc1_lib.evaluation.auditing import judged_episodes, played_episodes
from rc1_lib.forecast.estimate import Estimate, exactly, mean_of
from rc1_lib.forecast.judge_rates import JudgeRates
from rc1_lib.forecast.pilot import Pilot
from rc1_lib.run import Run

_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Bill:
    """What something takes.

    Attributes:
        hours: of the clock.
        gpu_hours: the same for each GPU that the pilot held, summed, whether it is busy or waits for the judge; 0 on a
            CPU. A vLLM server's GPUs are not counted: who runs it knows how many they are.
        judge_calls: sent to a judge who is paid.
        usd: for them.
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
        """So many of it."""
        return Bill(self.hours * times, self.gpu_hours * times, self.judge_calls * times, self.usd * times)


def training_bill(run: Run, pilot: Pilot, rates: JudgeRates) -> Bill:
    """Of the steps of one seed, and of its looks at held-out rows, as fast as a step's episodes are played.

    The judge is asked about its baseline beside them, once before every segment unless it looks changed.
    """
    steps, samples = run.config.steps, run.config.judge.samples
    seconds = mean_of([step.seconds for step in pilot.steps])
    dialogues = mean_of([float(step.dialogues) for step in pilot.steps])
    hours = seconds * (steps / _HOUR) + _playing(run, pilot) * (_looked_at(run) / _HOUR)
    segments = math.ceil(steps / run.config.training.segment_steps)
    asked = dialogues * (steps * samples) + exactly(segments * run.config.judge.baseline.n * samples)
    return _bill(hours, pilot, asked, rates)


def evaluation_bill(run: Run, seeds: int, pilot: Pilot, rates: JudgeRates) -> Bill:
    """Of judging the runs of so many seeds on the held-out prompts, as fast as a step's episodes are played."""
    asked = exactly(judged_episodes(run, seeds) * run.config.judge.samples)
    return _bill(_playing(run, pilot) * (played_episodes(run, seeds) / _HOUR), pilot, asked, rates)


def _playing(run: Run, pilot: Pilot) -> Estimate:
    """Seconds of one episode."""
    return mean_of([step.playing / run.config.batch_size for step in pilot.steps])


def _looked_at(run: Run) -> int:
    """How many episodes the looks of `training.eval_shadow` play: every n-th step's, and the last one's."""
    look = run.config.training.eval_shadow
    return 0 if look.every_steps is None else math.ceil(run.config.steps / look.every_steps) * look.prompts


def _bill(hours: Estimate, pilot: Pilot, replies: Estimate, rates: JudgeRates) -> Bill:
    calls = replies * rates.calls
    return Bill(hours, hours * pilot.gpus, calls, calls * rates.usd)


@dataclass(frozen=True, slots=True)
class CapVerdict:
    """Where a bound of the cap lies to what the training of a seed is expected to take.

    Attributes:
        words: a sentence.
        certain: whether even the least that is expected reaches it.
    """

    words: str
    certain: bool


def beside_cap(bill: Bill, steps: int, cap: Cap) -> list[CapVerdict]:
    """Every bound of the cap that the training of a seed may reach."""
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
