"""What a training will take: the hours of two timed steps times all steps, and the judge's calls times their cost.

The steps are discarded. They cannot tell how the policy will change: one that learns to say more takes longer steps.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from statistics import fmean

from rc1_lib.config.curriculum import Cap
from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.auditing import played_episodes
from rc1_lib.forecast.judge_cost import Stage, cost_of, tokens_of, training_replies
from rc1_lib.judge.budget import prices_of
from rc1_lib.judge.prompt import dialogue_sha256
from rc1_lib.judge.providers import LIVE
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.api import make_engine
from rc1_lib.training.device import get_device
from rc1_lib.training.episode_judge import REPLIES
from rc1_lib.training.ppo_run import Prepared
from rc1_lib.training.rows import SHADOW_ROWS
from rc1_lib.training.step_profile import dry_run

STAGE = "pilot"
_TIMED = 2
_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Pilot:
    """The means of a timed step.

    Attributes:
        playing: seconds of it for playing and judging the episodes.
        dialogues: number of distinct dialogues that were played and judged; 0 if the step learned from the pool's.
        device: torch's type of the device, such as `cuda`.
    """

    seconds: float
    playing: float
    dialogues: float
    device: str


def run_pilot(prepared: Prepared, seed: int) -> Pilot:
    """Run one step to warm up and two timed ones. A live judge is asked, and its replies are stored."""
    engine = make_engine(prepared.run.config.training.engine)
    timed: list[tuple[float, float, int]] = []
    with dry_run(prepared, seed, engine) as run:
        for number in range(_TIMED + 1):
            report_progress(STAGE, number, _TIMED + 1, "to warm up" if number == 0 else "")
            batch = run.next_batch()
            began = time.perf_counter()
            run.strategy.on_batch(batch)
            played = time.perf_counter()
            engine.train_step(batch)
            dialogues = len({dialogue_sha256(episode.messages) for episode in batch.get("trajectories", ())})
            timed.append((time.perf_counter() - began, played - began, dialogues))
    report_progress(STAGE, _TIMED + 1, _TIMED + 1)
    seconds, playing, dialogues_of_steps = zip(*timed[1:], strict=True)
    return Pilot(fmean(seconds), fmean(playing), fmean(dialogues_of_steps), get_device().type)


@dataclass(frozen=True, slots=True)
class Bill:
    """The cost of a part of a training.

    Attributes:
        hours: hours of wall-clock time.
        judge_calls: calls to a paid judge, without retries.
        usd: their cost in USD; None if no price is known.
    """

    hours: float
    judge_calls: int
    usd: float | None


def training_bill(run: Run, pilot: Pilot, seeds: int) -> Bill:
    """Return the cost of the steps of `seeds` runs, with `training.eval_shadow` played as fast as a step's episodes.

    Raises:
        RC1Error: when a paid judge has no replies about episodes yet.
    """
    shadow, steps = run.config.training.eval_shadow, run.config.steps
    looked_at = 0 if shadow.every_steps is None else math.ceil(steps / shadow.every_steps) * SHADOW_ROWS
    hours = (pilot.seconds * steps + _playing(run, pilot) * looked_at) / _HOUR
    asked = training_replies(run, pilot.dialogues) if run.config.training.pays_judge else 0
    return _bill(run, hours * seeds, asked * seeds)


def evaluation_bill(run: Run, pilot: Pilot, seeds: int) -> Bill:
    """Return the cost of evaluating `seeds` runs on the held-out prompts, played as fast as a step's episodes.

    Raises:
        RC1Error: when a paid judge has no replies about episodes yet.
    """
    episodes = run.config.training.held_out.judged_episodes(seeds) if run.config.pays_judged_score else 0
    judged = episodes * run.config.judge.samples
    return _bill(run, _playing(run, pilot) * played_episodes(run, seeds) / _HOUR, judged)


def _playing(run: Run, pilot: Pilot) -> float:
    """Return the seconds of one episode."""
    return pilot.playing / run.config.batch_size


def _bill(run: Run, hours: float, calls: int) -> Bill:
    judge = run.config.judge
    if judge.provider not in LIVE or not calls:
        return Bill(hours, 0, 0.0)
    tokens = tokens_of(run, REPLIES if run.config.training.pays_judge else None)
    if tokens.read is None:
        raise RC1Error(
            f"{judge.provider}: the usage log has no two replies about episodes, so the judge's cost is unknown; run "
            f"`rc1 plan` while the judge answers"
        )
    return Bill(hours, calls, cost_of([Stage("", calls, 0, 0.0)], tokens, prices_of(judge)[0]).usd)


def cap_reached(bill: Bill, steps: int, cap: Cap) -> list[str]:
    """Return a sentence for every limit of the cap that the training of a seed will reach."""
    found = []
    for name, most, expected in (("hours", cap.hours, bill.hours), ("usd", cap.usd, bill.usd)):
        if most is not None and expected is not None and expected >= most:
            at = int(steps * most / expected)
            found.append(f"training.cap.{name} is {most:g}: a seed's run will pause at about step {at:,} of {steps:,}")
    return found
