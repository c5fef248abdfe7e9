"""Controls: train a policy on an uninformative reward, and check that the evaluation finds no gain.

The changes in success and in right answers on held-out prompts decide, paired with the control's initial policy. A gain
beyond its interval cannot have been learned, so it shows that the evaluation leaks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from rc1_lib.checks import at_least, at_most, info
from rc1_lib.config.engines import ControlKind
from rc1_lib.config.training import HELD_OUT_SEED
from rc1_lib.evaluation.answers import check_held_out, episodes_of, prompts_sha256
from rc1_lib.evaluation.episodes import EpisodeRecord, EvaluationError, episode_frame, records_of
from rc1_lib.evaluation.evaluate import BASE
from rc1_lib.evaluation.paired import Contrast, contrast
from rc1_lib.evaluation.policies import player_of
from rc1_lib.gate_report import GateReport, write_report
from rc1_lib.numbers.uncertainty import CONFIDENCE
from rc1_lib.records import Check, GateResult
from rc1_lib.reward.intervals import interval_in_words
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.callbacks.logs import MetricsLog
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.checkpoint.save_load import load_checkpoint
from rc1_lib.training.control import Control
from rc1_lib.training.ppo_run import Prepared, advance, check_own
from rc1_lib.training.run_paths import paths_of

GATE = "control"
_MIN_KL = 0.001
"""Smallest KL to the initial policy at the last step, in nats per episode: an unchanged policy proves nothing."""
AFTER = "control"
"""The policy's name in the episodes."""
KL = "objective/kl_k3"
_FIGURES = (
    "success", "success_needed", "success_clear", "success_hard", "right", "right_needed", "ask_recall",
    "overclar_rate", "turns",
)  # fmt: skip


def report_path(kind: ControlKind) -> str:
    """Return the path of a control's report, relative to the workspace."""
    return f"reports/control_{kind}.json"


def run_control(
    prepared: Prepared, kind: ControlKind, seeds: Sequence[int], notice: Callable[[str], None] = print
) -> GateReport:
    """Train and evaluate a control for each seed, and write `reports/control_<kind>.json`.

    A killed control is resumed; a control of another run is replaced. Files of real runs are not touched.

    Args:
        prepared: the inputs of the real run.
        kind: the uninformative reward.
        seeds: the training seeds; each must pass separately.
        notice: called with a message about what is resumed.

    Raises:
        RC1Error: when the configuration is invalid, or a prompt of the evaluation was used in training.
    """
    check_held_out(prepared.selection.held_out, prepared.selection.train)
    control = prepared.under(Control(kind))
    last = control.run.config.steps
    for seed in seeds:
        check_own(control.run, seed, control.facts(seed), start_over=True, notice=notice)
    checkpoints = {seed: advance(control, seed, last, notice) for seed in seeds}
    kl = {seed: _last_kl(control.run, seed) for seed in seeds}
    rows = prepared.selection.held_out
    records: list[EpisodeRecord] = []
    with player_of(control, seeds[0]) as player:
        report_progress(GATE, 0, 1 + len(seeds))
        start = episodes_of(control, player, player.temperature)
        for number, (seed, path) in enumerate(checkpoints.items(), start=1):
            report_progress(GATE, number, 1 + len(seeds))
            player.load_adapter(load_checkpoint(path).tensors["adapter"])
            for policy, played in ((BASE, start), (AFTER, episodes_of(control, player, player.temperature))):
                records += records_of(played, rows, policy=policy, mode="sampled", seed=seed)
    report_progress(GATE, 1 + len(seeds), 1 + len(seeds))
    compared = compare(prepared.run, episode_frame(records))
    gate = control_gate(kind, compared, kl, prepared.run.config.gates.evaluation.min_prompts)
    body = {
        "kind": kind,
        "steps": last,
        "reference": prepared.reference.sha256,
        "prompts_sha256": prompts_sha256(rows),
        "checkpoints": {
            str(seed): {"path": prepared.run.workspace.name(path), "sha256": fingerprint(path)}
            for seed, path in checkpoints.items()
        },
        "seeds": {
            str(seed): {"kl": kl[seed], **_body(found)} for seed, found in compared.items()
        },
    }  # fmt: skip
    return write_report(prepared.run, report_path(kind), gate, body, {})


def compare(run: Run, frame: pl.DataFrame) -> dict[int, Contrast]:
    """Compare each seed's control with the initial policy, on the sampled episodes of both."""
    resamples = run.config.gates.shared.resamples
    return {
        seed: contrast(
            frame.filter(pl.col("seed") == seed), before=BASE, after=AFTER,
            confidence=CONFIDENCE, resamples=resamples, seed=HELD_OUT_SEED,
        )
        for seed in frame["seed"].unique(maintain_order=True).to_list()
    }  # fmt: skip


def control_gate(
    kind: ControlKind,
    compared: Mapping[int, Contrast],
    kl: Mapping[int, float],
    min_prompts: int,
) -> GateResult:
    """Check for each seed that the control gained nothing, since there was nothing to learn.

    Args:
        kind: the uninformative reward.
        compared: seed -> the control compared with its initial policy.
        kl: seed -> KL between the two at the last step, in nats per episode.
        min_prompts: `gates.evaluation.min_prompts`.
    """
    checks: list[Check] = []
    few = ""
    for seed, found in compared.items():
        name = f"{kind} reward, seed {seed}"
        change = found.change["success"]
        enough = at_least(f"{name}: held-out prompts", found.prompts, min_prompts, "evaluate on more prompts")
        few = few or ("" if enough.passed else f"too few held-out prompts: {enough.value}; evaluate on more")
        checks += [
            enough,
            at_least(
                f"{name}: KL to the start, nats an episode", kl[seed], _MIN_KL,
                "the policy has not changed, so the control shows nothing: raise training.control.steps",
            ),
            at_most(
                f"{name}: success up for certain, pp", change.low, 0.0,
                "it succeeds more often although there was nothing to learn: the evaluation leaks. Look for prompts "
                "used in training, answers that the policy can see, and differences in how the two were played",
            ),
            at_most(
                f"{name}: right answers up for certain, pp", found.change["right"].low, 0.0,
                "it answers right more often although there was nothing to learn: the evaluation leaks, even where no "
                "question was asked. Look for answers that the policy can see",
            ),
            info(f"{name}: success up, pp", interval_in_words(change)),
            *(
                info(f"{name}: {figure}", f"{found.before[figure].value:.3f} -> {found.after[figure].value:.3f}")
                for figure in _FIGURES
            ),
        ]  # fmt: skip
    return GateResult(GATE, tuple(checks), error=few)


def _last_kl(run: Run, seed: int) -> float:
    path = run.workspace.path(paths_of(run, seed).metrics)
    lines = MetricsLog(path).read()
    if not lines or lines[-1]["step"] != run.config.steps:
        raise EvaluationError(
            f"{path}: has no line of the control's last step, {run.config.steps}; remove {run.workspace.root} and run "
            "the control again"
        )
    return float(lines[-1][KL])


def _body(found: Contrast) -> dict[str, Any]:
    sides = {"before": found.before, "after": found.after, "change": found.change}
    shown = {side: {name: values[name].to_dict() for name in _FIGURES} for side, values in sides.items()}
    return {"prompts": found.prompts, **shown}
