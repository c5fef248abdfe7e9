"""What the judge will cost before it is asked: calls times tokens times price.

Calls are counted without retries: one for each reply that no store has yet, and equal dialogues count once. The tokens
of a call are the mean of the configured judge's replies in the usage log (`rc1 probe-scorer` writes some); without any
they are the most that it can read and write.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import fmean

import polars as pl

from rc1_lib.calibration.reward_hacking import ATTACK_STORE, attacked_rows, first_of_each_task, library
from rc1_lib.calibration.weight_calib import calibration_rows
from rc1_lib.config.judge import STORE_PATH, Prices
from rc1_lib.difficulty.derived import BALANCED
from rc1_lib.errors import RC1Error
from rc1_lib.evidence import Evidence
from rc1_lib.forecast.takes import ROLLOUTS
from rc1_lib.judge.budget import FEWEST_BYTES_A_TOKEN, LONGEST_REPLY, bytes_read, prices_of
from rc1_lib.judge.calls import ANSWERED
from rc1_lib.judge.client import BAD_REPLY_ATTEMPTS
from rc1_lib.judge.judge import open_judge, open_store
from rc1_lib.judge.prompt import dialogue_sha256, read_spec, write_ask
from rc1_lib.judge.providers import LIVE, endpoint, model_asked, whom
from rc1_lib.labels.label_file import read_labels
from rc1_lib.pool.checked_rows import rows_of
from rc1_lib.pool.derived import SHADOW, TAKES
from rc1_lib.pool.seed import drawn
from rc1_lib.records import Message
from rc1_lib.rows.frame import ROW_COLUMNS
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import FileState

_LAST, _FEWEST = 2000, 2
"""Most and fewest replies of the usage log that tell the tokens of a call."""
_TRAINING = "training"


@dataclass(frozen=True, slots=True)
class Stage:
    """What a stage will ask the judge for.

    Attributes:
        calls: number of replies that no store has yet, counting all samples.
        stored: number of replies that are stored already and cost nothing.
        bytes_in: total bytes of the requests of `calls`.
    """

    name: str
    calls: int
    stored: int
    bytes_in: float

    def __mul__(self, times: int) -> Stage:
        """Return the stage repeated `times` times."""
        return Stage(self.name, self.calls * times, self.stored * times, self.bytes_in * times)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a call.

    Attributes:
        read: tokens that the model reads; None if no replies were measured.
        written: tokens that it writes, including thinking; if no replies were measured, the most that it may.
        measured: number of replies that were measured.
    """

    read: float | None
    written: float
    measured: int


@dataclass(frozen=True, slots=True)
class Cost:
    """Tokens and USD of some stages; `usd` is None, not 0, if no price is known."""

    calls: int
    stored: int
    tokens_in: float
    tokens_out: float
    usd: float | None


def shadow_and_takes(run: Run) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the shadow set and its takes, read from their files, or built in memory if these are not up to date.

    Raises:
        RC1Error: when they cannot be read or built.
    """
    if SHADOW.state(run) is FileState.FRESH and TAKES.state(run) is FileState.FRESH:
        return rows_of(run, SHADOW), rows_of(run, TAKES)
    shadow, takes = drawn(run)
    return pl.DataFrame(shadow, schema=ROW_COLUMNS), pl.DataFrame(takes, schema=ROW_COLUMNS)


def preflight_stages(
    run: Run, data: tuple[pl.DataFrame, pl.DataFrame], *, rounds: Collection[int] = (1, 2), calibrates: bool = True
) -> list[Stage]:
    """Return what a preflight, or a calibration (no rounds), will ask the judge for.

    If the balanced pool is not built yet, its rows are assumed to be as long as those of the shadow set.

    Args:
        data: the result of `shadow_and_takes`.
        rounds: the rounds that follow.
        calibrates: whether the calibration's stages may run.

    Raises:
        RC1Error: when the balanced pool cannot be read, or an attack cannot be played.
    """
    if not run.config.pays_judged_score:
        return []
    shadow, takes = data
    own, separate = _Requests(run, None), _Requests(run, ATTACK_STORE)
    found = []
    waived = run.config.gates.waivers
    if calibrates or (2 in rounds and "shadow_run" not in waived):  # round 2 asks about the same dialogues
        found.append(own.stage("shadow_baseline" if calibrates else "shadow_run", shadow["messages"]))
    if calibrates:
        if BALANCED.state(run) is FileState.FRESH:
            found.append(own.stage("calibration", calibration_rows(run)["messages"]))
        else:
            found.append(_unknown(run, "calibration", run.config.calibration.n, shadow))
        prompts = first_of_each_task(shadow, run.config.gates.reward_hacking.prompts)
        attacked = attacked_rows(run, library(run), prompts)["messages"]
        found.append(_sum("reward_hacking", own.stage("", takes["messages"]), separate.stage("", attacked)))
    if rounds and "judge_probe" not in waived:
        probed = _Requests(run, None, fresh=True).stage("", shadow["messages"].head(run.config.gates.probe.n))
        found.append(replace(probed, name="judge_probe") * len(rounds))
    labels = Evidence(run).path("labels")
    if rounds and "judge_agreement" not in waived and labels.exists():
        with suppress(RC1Error):  # an unreadable file costs nothing; its gate reports it
            labelled = read_labels(labels).messages.values()
            found.append(own.stage("judge_agreement", labelled))
    return found


def training_stages(run: Run, takes: pl.DataFrame, seeds: int, *, evaluate: bool) -> list[Stage]:
    """Return the most that a training of `seeds` runs will ask for, if its episodes are as long as the `takes`."""
    found = []
    if run.config.training.pays_judge:
        asked = training_replies(run, run.config.batch_size) // run.config.judge.samples
        tried = run.config.training.learnability.at_start * ROLLOUTS
        if tried:
            found.append(_unknown(run, "learnability", tried, takes))
        found.append(_unknown(run, _TRAINING, asked * seeds, takes))
    if evaluate and run.config.pays_judged_score:
        found.append(_unknown(run, "evaluation", run.config.training.held_out.judged_episodes(seeds), takes))
    return found


def training_replies(run: Run, dialogues: float) -> int:
    """Return the replies in one seed's training, given its distinct dialogues per step; includes all baselines."""
    steps, judge = run.config.steps, run.config.judge
    segments = math.ceil(steps / run.config.training.segment_steps)
    return round((dialogues * steps + segments * judge.baseline.n) * judge.samples)


def tokens_of(run: Run, where: str | None = None) -> Tokens:
    """Return the tokens of a call, measured on the configured judge's last replies in the usage log.

    Args:
        where: path of the store below the workspace; None for the judge's own store.
    """
    judge = run.config.judge
    if run.workspace.path(where or STORE_PATH).is_file():
        with open_store(run, where) as store:
            log = store.log()
        paid = log.filter(
            pl.col("provider") == judge.provider, pl.col("model_asked") == model_asked(judge),
            pl.col("spec") == read_spec(run).spec, pl.col("outcome").is_in([str(outcome) for outcome in ANSWERED]),
            "billable",
        ).select("tokens_in", "tokens_out").drop_nulls().tail(_LAST)  # fmt: skip
        if paid.height >= _FEWEST:
            read, written = (fmean(paid[name].to_list()) for name in paid.columns)
            return Tokens(read, written, paid.height)
    return Tokens(None, float(judge.sampling.max_tokens or LONGEST_REPLY), 0)


def cost_of(stages: Iterable[Stage], tokens: Tokens, prices: Prices) -> Cost:
    """Return the total cost of stages at these prices."""
    listed = list(stages)
    calls = sum(stage.calls for stage in listed)
    longest = sum(stage.bytes_in for stage in listed) / FEWEST_BYTES_A_TOKEN
    read, written = longest if tokens.read is None else calls * tokens.read, calls * tokens.written
    return Cost(calls, sum(stage.stored for stage in listed), read, written, prices.usd(read, written))


def above_limit(run: Run, stages: Sequence[Stage]) -> str:
    """Return why a person must agree to the judge's cost, in one sentence; empty if nobody must."""
    most, judge = run.config.judge.ask_above_usd, run.config.judge
    if most is None or not stages:
        return ""
    tokens = tokens_of(run)
    usd = cost_of(stages, tokens, prices_of(judge)[0]).usd
    if usd is None:
        asked, limit = sum(stage.calls for stage in stages if stage.name == _TRAINING), judge.budget.max_calls
        if limit is None or asked <= limit:
            return ""
        return (
            f"{whom(judge)} may be asked about the episodes {asked:,} times at an unknown price, and "
            f"judge.budget.max_calls is {limit:,}; judge.prices says what a million tokens cost"
        )
    if usd <= most:
        return ""
    known = f"about {usd:,.2f} USD" if tokens.measured else f"up to {usd:,.2f} USD"
    probe = "" if tokens.measured else "; rc1 probe-scorer in this workspace measures its replies, which cost less"
    return f"{whom(judge)} may cost {known}, and judge.ask_above_usd is {most:g}{probe}"


def check_preflight_cost(run: Run, *, rounds: Collection[int], agreed: bool, calibrates: bool = True) -> None:
    """Reject a preflight, or a calibration (no rounds), that may cost more than `judge.ask_above_usd`.

    Args:
        rounds: the rounds that follow.
        agreed: whether a person has agreed to the cost; then nothing is checked.
        calibrates: whether the calibration's stages may run.

    Raises:
        RC1Error: when the judge may cost more than that.
    """
    if agreed or run.config.judge.provider not in LIVE or not run.config.pays_judged_score:
        return
    try:
        dialogues = shadow_and_takes(run)
    except RC1Error:
        if calibrates:
            raise
        return  # data that cannot be built: round 1 says why, and revokes the ticket
    refuse_above_limit(run, preflight_stages(run, dialogues, rounds=rounds, calibrates=calibrates))


def check_training_cost(run: Run, seeds: int, *, evaluate: bool, agreed: bool) -> None:
    """Reject a training of `seeds` runs that may cost more than `judge.ask_above_usd`, unless a person has agreed.

    Raises:
        RC1Error: when the judge may cost more than that.
    """
    if not agreed and run.config.judge.provider in LIVE and run.config.pays_judged_score:
        refuse_above_limit(run, training_stages(run, shadow_and_takes(run)[1], seeds, evaluate=evaluate))


def refuse_above_limit(run: Run, stages: Sequence[Stage]) -> None:
    """Reject stages that may cost more than `judge.ask_above_usd` if nobody can agree.

    Raises:
        RC1Error: when they may; names the key and what to do.
    """
    if why := above_limit(run, stages):
        raise RC1Error(
            f"{why}. Nobody could confirm the cost, so no call was made: run the command at a terminal, or raise "
            f"judge.ask_above_usd (null: never ask)"
        )


class _Requests:
    """Counts the requests for one store, each once."""

    def __init__(self, run: Run, where: str | None, *, fresh: bool = False) -> None:
        """Start without requests.

        Args:
            where: path of the store below the workspace; None for the judge's own store.
            fresh: whether to count as if nothing were stored.
        """
        self._run, self._where, self._fresh = run, where, fresh
        self._spec, self._samples = read_spec(run), run.config.judge.samples
        self._seen: set[str] = set()

    def stage(self, name: str, dialogues: Iterable[Sequence[Message]]) -> Stage:
        """Count the requests about those dialogues that were not counted before."""
        new: dict[str, Sequence[Message]] = {}
        for messages in dialogues:
            if (sha256 := dialogue_sha256(messages)) not in self._seen:
                new[sha256] = messages
        self._seen |= new.keys()
        stored = self._stored(list(new))
        calls, read = 0, 0
        for sha256, messages in new.items():
            missing = self._samples - stored.get(sha256, 0)
            calls += missing
            if missing:
                read += missing * bytes_read(write_ask(self._spec, self._run.config.judge.sampling, messages, 0))
        return Stage(name, calls, sum(stored.values()), read)

    def _stored(self, dialogues: Sequence[str]) -> dict[str, int]:
        """Return the number of valid stored samples by dialogue."""
        judge = self._run.config.judge
        path = self._run.workspace.path(self._where or STORE_PATH)
        if self._fresh or judge.provider not in LIVE or not path.is_file():
            return {}
        with open_store(self._run, self._where) as store:
            known = store.model_of(endpoint((asked := open_judge(self._run, store)).config))
            if known is None:
                return {}
            keys = {asked.key(sha256, sample): sha256 for sha256 in dialogues for sample in range(self._samples)}
            found: dict[str, int] = {}
            for key in store.find(list(keys), known[0], bad_attempts=BAD_REPLY_ATTEMPTS):
                found[keys[key]] = found.get(keys[key], 0) + 1
            return found


def _unknown(run: Run, name: str, dialogues: int, like: pl.DataFrame) -> Stage:
    """Count the requests about dialogues that do not exist yet, assumed to be as long as the mean of `like`."""
    whole = _Requests(run, None, fresh=True).stage(name, like["messages"])
    calls = dialogues * run.config.judge.samples
    return Stage(name, calls, 0, calls * whole.bytes_in / max(whole.calls, 1))


def _sum(name: str, first: Stage, second: Stage) -> Stage:
    return Stage(name, first.calls + second.calls, first.stored + second.stored, first.bytes_in + second.bytes_in)
