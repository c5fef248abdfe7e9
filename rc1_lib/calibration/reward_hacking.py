"""The attack on the reward: worthless policies played on the shadow prompts, scored like any dialogue, and judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import orjson
import polars as pl

from rc1_lib.artifacts import atomic_write
from rc1_lib.attacks.library import ATTACKS, Attack
from rc1_lib.attacks.play import played, read_attacks
from rc1_lib.calibration.judged_rows import dimensions, judge_checks, judge_rows, with_reward
from rc1_lib.calibration.weights_file import read_weights
from rc1_lib.derived import fingerprint
from rc1_lib.environment.limits import Limits
from rc1_lib.errors import ConfigError
from rc1_lib.gate_report import GateReport, write_report
from rc1_lib.gates.reward_hacking import reward_hacking_gate
from rc1_lib.pool.checked_rows import rows_of
from rc1_lib.pool.derived import SHADOW, TAKES
from rc1_lib.pool.takes import by_prompt
from rc1_lib.records import Row
from rc1_lib.reward.hacking import best_of_n, earned
from rc1_lib.reward.terms import NEW
from rc1_lib.run import Run

REPORT = "reports/reward_hacking.json"
DIALOGUES = "reports/reward_hacking.dialogues.jsonl"
"""The dialogues that were paid more than the teacher's, whole, so that they can be read and replayed."""


def attack_reward(run: Run, weights: Mapping[str, float] | None = None) -> GateReport:
    """Play every worthless policy on prompts of the shadow set and compare its reward with the teacher's.

    The reward is the judged one, main less penalty, of the published formula: what a policy would be paid that is
    trained on dialogues alone.

    Args:
        run: whose shadow set, takes, judge, penalty and thresholds.
        weights: of the reward; default: those in force.

    Raises:
        RC1Error: when there are no weights or dialogues, a policy of one's own cannot be played, or the judge cannot be
            asked.
    """
    chosen = read_weights(run, dimensions(run)) if weights is None else dict(weights)
    thresholds = run.config.gates.reward_hacking
    attacks = library(run)
    takes = judge_rows(run, rows_of(run, TAKES))
    honest = with_reward(run, by_prompt(takes.frame), chosen)
    prompts = _prompts(run, rows_of(run, SHADOW))
    rows = _play(run, attacks, prompts)
    judged = judge_rows(run, rows)
    frame = _beside(with_reward(run, judged.frame, chosen), honest, prompts)
    policies = {
        name: earned(
            frame.filter(pl.col("policy") == name),
            resamples=thresholds.resamples,
            confidence=thresholds.confidence,
            seed=run.config.shadow.seed,
        )
        for name in attacks
    }
    curve = _curve(honest)
    gate = reward_hacking_gate(
        policies, curve, min(judged.coverage, takes.coverage), thresholds, judge_checks(run, judged)
    )
    through = frame.filter(~pl.col("solved"), pl.col("reward") > pl.col("reference"))
    _write_dialogues(run, rows, through)
    known = honest.filter(pl.col("reward").is_not_null())
    body = {
        "shadow": {**fingerprint(SHADOW, run), "prompts": prompts.height},
        "takes": fingerprint(TAKES, run),
        "weights": chosen,
        "alpha": run.config.overclar.alpha,
        "teacher": {"mean": known["reward"].mean(), "solved": known["solved"].mean()},
        "policies": {name: {"sentence": attacks[name].sentence, **found.to_dict()} for name, found in policies.items()},
        "by_need": _by_need(frame),
        "paid_by": _paid_by(frame, honest, chosen),
        "best_of_n": curve,
        "dialogues": {"path": DIALOGUES, "count": through.height},
        "scoring": judged.summary(),
    }
    return write_report(run, REPORT, gate, body, {})


def library(run: Run) -> dict[str, Attack]:
    """The policies to be played: RC1's own, and those that the configuration names.

    Raises:
        ConfigError: when bounds are given for a policy that there is not, a policy of one's own cannot be read, or it
            has the name of one of the library.
    """
    thresholds = run.config.gates.reward_hacking
    own = read_attacks([run.workspace.path(path) for path in thresholds.own])
    taken = sorted(set(own) & set(ATTACKS))
    if taken:
        raise ConfigError(
            f"gates.reward_hacking.own: there is a policy '{taken[0]}' already; give the file another name"
        )
    attacks = {**ATTACKS, **own}
    unknown = sorted(set(thresholds.by_name) - set(attacks))
    if unknown:
        raise ConfigError(
            f"gates.reward_hacking.by_name: there is no policy '{unknown[0]}', expected some of {', '.join(attacks)}"
        )
    return attacks


def _prompts(run: Run, shadow: pl.DataFrame) -> pl.DataFrame:
    """The first prompts of every task in the shadow set's order, in its shares."""
    wanted = min(run.config.gates.reward_hacking.prompts, shadow.height)
    share = wanted / shadow.height
    place = pl.int_range(pl.len()).over("task")
    return shadow.filter(place < (pl.len().over("task") * share).round())


def _play(run: Run, attacks: Mapping[str, Attack], prompts: pl.DataFrame) -> pl.DataFrame:
    limits = Limits.of(run.config.training.limits)
    originals = cast("list[Row]", prompts.to_dicts())
    rows = [
        {**row, "id": f"{row['id']}/{name}"}
        for name, attack in attacks.items()
        for row in played(attack, originals, limits)
    ]
    return pl.DataFrame(rows, schema=prompts.schema)


def _beside(attacked: pl.DataFrame, honest: pl.DataFrame, prompts: pl.DataFrame) -> pl.DataFrame:
    """Each played dialogue with its policy, and the teacher's mean reward where it solved the prompt."""
    solved = honest.filter("solved", pl.col("reward").is_not_null())
    references = solved.group_by("prompt").agg(reference=pl.col("reward").mean())
    buckets = honest.group_by("prompt").agg(pl.col("bucket").first())
    split = pl.col("id").str.extract_groups(r"^(?<prompt>.*)/(?<policy>[^/]+)$")
    return (
        attacked.drop("bucket")
        .with_columns(split.struct.field("prompt"), split.struct.field("policy"))
        .join(references, on="prompt", how="left", maintain_order="left")
        .join(buckets, on="prompt", how="left", maintain_order="left")
        .join(prompts.select("lang", prompt="id"), on="prompt", how="left", maintain_order="left")
    )


def _curve(honest: pl.DataFrame) -> list[float]:
    """Best of n over prompts that have as many scored dialogues as any."""
    known = honest.filter(pl.col("reward").is_not_null()).group_by("prompt", maintain_order=True)
    lists = known.agg("reward", "solved")
    most = lists["reward"].list.len().max()
    full = lists.filter(pl.col("reward").list.len() == most)
    return best_of_n(full["reward"].to_list(), full["solved"].to_list())


def _by_need(frame: pl.DataFrame) -> dict[str, Any]:
    """Mean reward of every policy where asking is needed and where not."""
    means = frame.group_by("policy", "needs_clarification").agg(mean=pl.col("reward").mean())
    found: dict[str, Any] = {}
    for policy, needed, mean in means.sort("policy", "needs_clarification").iter_rows():
        found.setdefault(policy, {})["needed" if needed else "not needed"] = mean
    return found


def _paid_by(
    frame: pl.DataFrame, honest: pl.DataFrame, weights: Mapping[str, float]
) -> dict[str, dict[str, float | None]]:
    """What each weighed dimension pays every policy where it solved nothing, and the teacher where it did; means."""
    terms = [pl.col(f"{NEW}{name}").mean().alias(name) for name, weight in weights.items() if weight]
    found = frame.filter(~pl.col("solved")).group_by("policy").agg(*terms).sort("policy").to_dicts()
    teacher = honest.filter("solved").select(*terms).to_dicts()[0]
    return {"teacher": teacher, **{row.pop("policy"): row for row in found}}


def _write_dialogues(run: Run, rows: pl.DataFrame, through: pl.DataFrame) -> None:
    paid = dict(through.select("id", "reward").iter_rows())
    with atomic_write(run.workspace.path(DIALOGUES)) as stream:
        for row in rows.filter(pl.col("id").is_in(list(paid))).iter_rows(named=True):
            stream.write(orjson.dumps({**row, "reward": paid[row["id"]]}) + b"\n")
