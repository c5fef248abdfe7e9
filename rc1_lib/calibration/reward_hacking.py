"""The reward-hacking evaluation: plays adversarial policies on the shadow prompts and scores their dialogues.

They write what no scripted expert writes, but an optimiser would find.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, cast

import orjson
import polars as pl

from rc1_lib.attacks.library import ATTACKS, Attack
from rc1_lib.attacks.play import played, read_attacks
from rc1_lib.calibration.hacking_checks import MIN_MARGIN, reward_hacking_gate
from rc1_lib.calibration.judged_rows import AsksJudge, judge_checks, judge_rows, measured_rows, scoring, with_reward
from rc1_lib.calibration.keyed_report import kept_verdict, report_key, report_path
from rc1_lib.calibration.weights_file import weights_in_force
from rc1_lib.environment.rewards import RewardSettings, training_rewards
from rc1_lib.environment.turn import Limits
from rc1_lib.errors import ConfigError
from rc1_lib.gate_report import PLOTS, GateReport, write_report
from rc1_lib.judge.budget import whole_budget
from rc1_lib.judge.results import Judged
from rc1_lib.numbers.uncertainty import CONFIDENCE
from rc1_lib.plots import reward as plots
from rc1_lib.pool.checked_rows import rows_of
from rc1_lib.pool.derived import SHADOW, TAKES
from rc1_lib.pool.takes import by_prompt
from rc1_lib.provenance.derived import Artifact, fingerprint
from rc1_lib.records import GateResult, Row
from rc1_lib.reward.hacking import Earned, best_of_n, earned
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress
from rc1_lib.workspace.artifacts import atomic_write
from rc1_lib.workspace.file_hashes import sha256_known

DIALOGUES = "reports/reward_hacking.dialogues.jsonl"
"""The whole dialogues that earned more than the scripted expert's, to read and replay."""


def library(run: Run) -> dict[str, Attack]:
    """Return the policies to play: RC1's own and those in the configuration.

    Raises:
        ConfigError: when a custom policy cannot be read, or has the name of one in the library.
    """
    thresholds = run.config.gates.reward_hacking
    if thresholds.own:
        shown = (f"{path} (SHA-256 {sha256[:12]})" for path, sha256 in own_attacks(run).items())
        report_progress("code of your own", 0, len(thresholds.own), f"runs {', '.join(shown)}")
    own = read_attacks([run.workspace.find(path) for path in thresholds.own])
    taken = sorted(set(own) & set(ATTACKS))
    if taken:
        raise ConfigError(f"gates.reward_hacking.own: the policy '{taken[0]}' exists already; rename the file")
    return {**ATTACKS, **own}


def hedges(attacks: Mapping[str, Attack]) -> list[str]:
    """Return the names of policies whose answers do not commit to one answer."""
    return [name for name, attack in attacks.items() if attack.never_right]


def own_attacks(run: Run) -> dict[str, str]:
    """Return the fingerprints of the custom policies, by path; "" if a file is missing."""
    paths = run.config.gates.reward_hacking.own
    files = {path: run.workspace.find(path) for path in paths}
    return {path: sha256_known(file) if file.is_file() else "" for path, file in files.items()}


def attacked_rows(run: Run, attacks: Mapping[str, Attack], prompts: pl.DataFrame) -> pl.DataFrame:
    """Return every prompt once per policy, with the policy's dialogue instead of the row's; ids are `<id>/<policy>`.

    Raises:
        RowError: when a row lacks a field that the environment needs.
        ConfigError: when a policy does not end its dialogue.
    """
    limits = Limits.of(run.config.training.limits)
    originals = cast("list[Row]", prompts.to_dicts())
    rows = [
        {**row, "id": f"{row['id']}/{name}"}
        for name, attack in attacks.items()
        for row in played(attack, originals, limits)
    ]
    return pl.DataFrame(rows, schema=prompts.schema)


def first_of_each_task(rows: pl.DataFrame, wanted: int) -> pl.DataFrame:
    """Return about `wanted` rows: the first of every task, in proportion to the task's share."""
    share = min(wanted, rows.height) / max(rows.height, 1)
    return rows.filter(pl.int_range(pl.len()).over("task") < (pl.len().over("task") * share).round())


ATTACK_STORE = "data/judge/scores.attacks.sqlite"
"""A separate store for a live judge's replies here: the preflight's gates read the other log."""


def attack_reward(run: Run, weights: Mapping[str, float] | None = None, *, judge: AsksJudge = judge_rows) -> GateReport:
    """Play every adversarial policy on shadow prompts, and compare its training reward with the scripted expert's.

    If training also pays for the judged score, what the score alone would pay is reported too.

    Args:
        run: supplies shadow set, takes, judge, penalty and thresholds.
        weights: of the judged score; default: the weights in force. They are not read if training pays for no score.
        judge: scores rows like `judge_rows`.

    Raises:
        RC1Error: when there are no weights or dialogues, a custom policy cannot be played, or the judge cannot be
            asked.
    """
    attacks = library(run)
    chosen = (weights_in_force(run) if weights is None else dict(weights)) if run.config.pays_judged_score else {}
    takes = rows_of(run, TAKES)
    prompts = first_of_each_task(rows_of(run, SHADOW), run.config.gates.reward_hacking.prompts)
    rows = attacked_rows(run, attacks, prompts)
    scored = asked = None
    if chosen:
        spending = whole_budget(run.config.judge)  # of the stage, not of each scoring
        scored = judge(run, takes, spending=spending), judge(run, rows, store=ATTACK_STORE, spending=spending)
        expert, played = (judged.rows for judged in scored)
        asked = _together(*scored)
    else:
        expert, played = measured_rows(takes), measured_rows(rows)
    honest = _paid(run, by_prompt(expert), chosen)
    frame = _with_references(_paid(run, _of_prompts(played, honest), chosen), honest, prompts, attacks)
    paid = _earned(run, frame, "trained", attacks)
    alone = _earned(run, frame, "reward", attacks) if scored else {}
    curve = _curve(honest)
    gate = reward_hacking_gate(
        paid,
        curve,
        hedges(attacks),
        coverage=min(judged.coverage for judged in scored) if scored else None,
        alone=alone,
        judge_checks=judge_checks(run, asked.models) if asked else (),
    )
    through = frame.filter("worthless", pl.col("trained") > pl.col("reference_trained"))
    _write_dialogues(run, rows, through)
    known = honest.filter(pl.col("trained").is_not_null())
    key = _key(run, chosen)
    body = {
        "key": key,
        "shadow": {**fingerprint(SHADOW, run), "prompts": prompts.height},
        "takes": fingerprint(TAKES, run),
        "weights": chosen,
        "alpha": run.config.overclar.alpha,
        "training_reward": asdict(RewardSettings.of(run.config)),
        "teacher": {"mean": known["trained"].mean(), "solved": known["solved"].mean()},
        "policies": {name: {"sentence": attacks[name].sentence, **found.to_dict()} for name, found in paid.items()},
        "judged_alone": {name: found.to_dict() for name, found in alone.items()},
        "by_need": _by_need(frame),
        "best_of_n": curve,
        "dialogues": {"path": DIALOGUES, "count": through.height},
        "scoring": scoring(run, asked) if asked else None,
    }
    drawn = {"worthless policies": _draw(run, key, paid)}
    return write_report(run, report_path(HACKING.name, key), gate, body, drawn, HACKING.name)


def _together(one: Judged, other: Judged) -> Judged:
    """Return both scorings as one, for the report: what was asked and paid is the sum."""
    rows = pl.concat([one.rows, other.rows])
    return replace(other, rows=rows, calls=one.calls + other.calls, usd=one.usd + other.usd)


def _draw(run: Run, key: str, policies: Mapping[str, Earned]) -> str:
    file = f"{PLOTS}/reward_hacking_{key}.png"
    drawn = {name: found.to_dict() for name, found in policies.items()}
    figures = {
        name: (
            found["margin"],
            found["intervals"].get("margin", {}).get("low"),
            found["intervals"].get("margin", {}).get("high"),
            found["above"],
        )
        for name, found in drawn.items()
    }
    prompts = max((found.overall.prompts for found in policies.values()), default=0)
    plots.undeserved(
        run.workspace.path(file),
        figures,
        least=MIN_MARGIN,
        caption=f"n = at most {prompts} prompts that the scripted expert solved and a policy did not",
    )
    return file


def hacking_verdict(run: Run) -> GateResult:
    """Return the verdict of the reward-hacking evaluation with the weights in force.

    Raises:
        RC1Error: when there are no weights, or the report cannot be read.
    """
    return kept_verdict(run, HACKING, _key(run, weights_in_force(run)), "attack on what training pays")


def _key(run: Run, weights: Mapping[str, float]) -> str:
    config = run.config
    return report_key(
        run,
        weights,
        config.gates.reward_hacking,
        shadow=SHADOW.sha256(run),
        training=asdict(RewardSettings.of(config)),
        limits=config.training.limits.model_dump(mode="json"),
        own=own_attacks(run),
    )


HACKING = Artifact(
    "reward_hacking", lambda run: report_path("reward_hacking", _key(run, weights_in_force(run))), None,
    "rc1_lib.calibration.reward_hacking.attack_reward", "rc1 attack-reward",
)  # fmt: skip
"""For the weights and the reward in force; its name contains a hash of everything it is made from, including code."""


def _paid(run: Run, frame: pl.DataFrame, weights: Mapping[str, float]) -> pl.DataFrame:
    """Add `trained`, the training reward, and, if there are weights, the judged reward."""
    judged = with_reward(run, frame, weights) if weights else frame
    return judged.with_columns(trained=training_rewards(RewardSettings.of(run.config)))


def _earned(run: Run, frame: pl.DataFrame, column: str, attacks: Mapping[str, Attack]) -> dict[str, Earned]:
    paid = frame.with_columns(reward=column, reference=f"reference_{column}")
    return {
        name: earned(
            paid.filter(pl.col("policy") == name),
            resamples=run.config.gates.shared.resamples,
            confidence=CONFIDENCE,
            seed=run.config.shadow.seed,
        )
        for name in attacks
    }


def _of_prompts(attacked: pl.DataFrame, honest: pl.DataFrame) -> pl.DataFrame:
    """Add to each played dialogue its prompt and policy; its difficulty becomes the prompt's, as in training."""
    buckets = honest.group_by("prompt").agg(pl.col("bucket").first())
    split = pl.col("id").str.extract_groups(r"^(?<prompt>.*)/(?<policy>[^/]+)$")
    return (
        attacked.drop("bucket")
        .with_columns(split.struct.field("prompt"), split.struct.field("policy"))
        .join(buckets, on="prompt", how="left", maintain_order="left")
    )


def _with_references(
    attacked: pl.DataFrame, honest: pl.DataFrame, prompts: pl.DataFrame, attacks: Mapping[str, Attack]
) -> pl.DataFrame:
    """Add to each played dialogue whether it is adversarial, and what faultless expert dialogues earn.

    Faultless means solved without needless questions. A dialogue that asks needlessly is paid less on purpose, so an
    adversarial dialogue above it would say nothing against the reward.
    """
    needless = (pl.col("clarifications") > 0) & ~pl.col("needs_clarification")
    faultless = honest.filter("solved", ~needless, pl.col("trained").is_not_null())
    paid = [name for name in ("reward", "trained") if name in honest.columns]
    references = faultless.group_by("prompt").agg(pl.col(name).mean().alias(f"reference_{name}") for name in paid)
    return (
        attacked.with_columns(worthless=~pl.col("solved") | pl.col("policy").is_in(hedges(attacks)))
        .join(references, on="prompt", how="left", maintain_order="left")
        .join(prompts.select("lang", prompt="id"), on="prompt", how="left", maintain_order="left")
    )


def _curve(honest: pl.DataFrame) -> list[float]:
    """Compute best of n over the prompts with the most scored dialogues."""
    known = honest.filter(pl.col("trained").is_not_null()).group_by("prompt", maintain_order=True)
    lists = known.agg("trained", "solved")
    most = lists["trained"].list.len().max()
    full = lists.filter(pl.col("trained").list.len() == most)
    return best_of_n(full["trained"].to_list(), full["solved"].to_list())


def _by_need(frame: pl.DataFrame) -> dict[str, Any]:
    """Compute the mean reward of every policy, separately for prompts that need a question and others."""
    means = frame.group_by("policy", "needs_clarification").agg(mean=pl.col("trained").mean())
    found: dict[str, Any] = {}
    for policy, needed, mean in means.sort("policy", "needs_clarification").iter_rows():
        found.setdefault(policy, {})["needed" if needed else "not needed"] = mean
    return found


def _write_dialogues(run: Run, rows: pl.DataFrame, through: pl.DataFrame) -> None:
    paid = dict(through.select("id", "trained").iter_rows())
    with atomic_write(run.workspace.path(DIALOGUES)) as stream:
        for row in rows.filter(pl.col("id").is_in(list(paid))).iter_rows(named=True):
            stream.write(orjson.dumps({**row, "reward": paid[row["id"]]}) + b"\n")
