"""Find which simulated judges each gate of the calibration accepts, on embedded and public rows, and why others fail.

    python benchmarks/bench_simulated_judges.py [EMBEDDED [PUBLIC]]

The judges are those of `benchmarks/simulated_judge.py`. Each grades 600 rows, the shadow set, its takes and the
attack's dialogues. Every stage of `rc1 calibrate` is evaluated, even after a failed one: with the published settings,
with a weaker pull to the old weights, and with the penalty of profile `local` for a needless question. The data are
those of the given workspaces, which are only read; by default, 3,000 embedded rows and 600 of the public files next
to the project are built in a temporary folder. Prints a table and the messages of failed
gates. Takes seven minutes on one core.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from lacking import not_run
from simulated_judge import Simulated

from rc1_lib.calibration.judged_rows import judge_rows
from rc1_lib.calibration.overclar_ablation import overclar_ablation
from rc1_lib.calibration.reward_hacking import attack_reward
from rc1_lib.calibration.shadow_run import CALIBRATED, baseline_run, shadow_run
from rc1_lib.calibration.weight_calib import weight_calib
from rc1_lib.difficulty.steps import write_balanced, write_metrics
from rc1_lib.gate_report import GateReport
from rc1_lib.judge.results import Judged
from rc1_lib.pool.checked_rows import rows_of
from rc1_lib.pool.derived import SHADOW
from rc1_lib.pool.seed import build_seed
from rc1_lib.reward.rank_agreement import spearman, top_overlap
from rc1_lib.reward.terms import add_old_score
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import PROJECT_ROOT

PUBLIC = PROJECT_ROOT.parent / "shared" / "data"
SETTINGS = {
    "published": ("overclar.alpha=0.07", "calibration.l2=0.1"),
    "weak pull": ("overclar.alpha=0.07", "calibration.l2=0.01"),
    "price 0.25": ("overclar.alpha=0.25", "calibration.l2=0.1"),
}
"""Pull to the old weights and penalty for a needless question; the last are those of profile `local`."""
FEW = ("gates.shared.resamples=200",)
"""Fewer resamples for intervals that are only reported; the calibration's own, which decide, are as shipped."""
SKILLS = (0.7, 0.8, 0.9, 0.95, 1.0)
JUDGES: dict[str, Simulated | None] = {
    "the rubric itself": None,
    **{f"{skill:g}": Simulated(skill) for skill in SKILLS},
    "0.9, in tenths": Simulated(0.9, step=0.1),
    "0.9, all good ones alike": Simulated(0.9, spread=0.0),
    "1, all good ones alike": Simulated(1.0, spread=0.0),
}
HEAD = (
    "rows, judge", "settings", "AUC old → new (no price)", "gain (at most)", "error (at most)", "Spearman (no price)",
    "top tenth (no price; lead kept)", "correlation (no price)", "attack, smallest margin", "ablation", "fails",
)  # fmt: skip


class Remembering:
    """The run's own judge with a cache, so that it is asked once about each set of dialogues."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, ...], Judged] = {}

    def __call__(self, run: Run, rows: pl.DataFrame, **options: Any) -> Judged:
        """Judge rows as `judge_rows` does."""
        key = tuple(rows["id"])
        if key not in self.known:
            self.known[key] = judge_rows(run, rows, **options)
        return self.known[key]


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of every stage for one judge, and the consistency of its grades.

    Attributes:
        stages: the outcomes, in order.
        halo: mean rank correlation between the judge's dimensions, on solved dialogues of the shadow set.
        again: overlap of the best tenth by the old score with that of the same judge asked again.
    """

    stages: Sequence[GateReport]
    halo: float
    again: float


def trial(run: Run, simulated: Simulated | None, remembering: Remembering) -> Trial:
    """Run every stage with this judge."""

    def of(simulated: Simulated | None) -> Callable[..., Judged]:
        if simulated is None:
            return remembering
        return lambda run, rows, **options: simulated.on(remembering(run, rows, **options), rows)

    judge = of(simulated)
    found = weight_calib(run, judge=judge)
    weights = found.body["weights"]
    stages = (
        baseline_run(run, judge=judge),
        found,
        attack_reward(run, weights, judge=judge),
        overclar_ablation(run, weights, judge=judge),
        shadow_run(run, CALIBRATED, weights, judge=judge),
    )
    rows, old = rows_of(run, SHADOW), run.config.reward.old_weights
    second = of(simulated and replace(simulated, asked=1))
    first, again = (add_old_score(ask(run, rows).rows, old) for ask in (judge, second))
    solved = first.filter("solved")
    names = [name for name in old if solved[name].n_unique() > 1]
    pairs = [(a, b) for a in names for b in names if a < b]
    halo = float(np.mean([spearman(solved[a].to_numpy(), solved[b].to_numpy()) for a, b in pairs]))
    return Trial(stages, halo, top_overlap(first["old"].to_numpy(), again["old"].to_numpy(), 0.1))


def line(rows: str, name: str, setting: str, found: Trial) -> str:
    """Return a judge's line of the table."""
    _, calibration, attack, _, shadow = (stage.body for stage in found.stages)
    weights, free = calibration["calibration"], shadow["without_price_of_questions"]
    least = min(policy["margin"] for policy in attack["policies"].values() if policy["margin"] is not None)
    drop = next(check.value for check in found.stages[3].gate.checks if check.name == "rate drop, %")
    failed = [f"{stage.gate.name}: {check.name}" for stage in found.stages for check in stage.gate.failures]
    cells = (
        f"{rows}, {name}",
        setting,
        f"{shadow['auc_old']:.3f} → {shadow['auc_new']:.3f} ({free['auc_new']:.3f})",
        f"{weights['improve_pct_vs_old']:.1f} ({weights['unpulled']['improve_pct_vs_old']:.1f})",
        f"{weights['mae_drop_pct_vs_old']:.1f} ({weights['unpulled']['mae_drop_pct_vs_old']:.1f})",
        f"{shadow['spearman']:.2f} ({free['spearman']:.2f})",
        f"{shadow['top10_overlap']:.2f} ({free['top10_overlap']:.2f}; {shadow['top10_lead_kept']:.2f})",
        f"{shadow['corr_improve_pct']:.1f} ({free['corr_improve_pct']:.1f})",
        f"{least:.2f}",
        f"{drop:.0f} %",
        "; ".join(failed) or "none",
    )
    return f"| {' | '.join(cells)} |"


def tried(rows: str, run: Run, root: Path, settings: Sequence[str]) -> None:
    """Print the table of these rows, and the messages of failed gates."""
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}", flush=True)
    remembering, messages, agreement = Remembering(), {}, {}
    for name, simulated in JUDGES.items():
        for setting, chosen in SETTINGS.items():
            found = trial(open_run(workspace=root, overrides=(*settings, *FEW, *chosen)), simulated, remembering)
            print(line(rows, name, setting, found), flush=True)
            messages[name, setting] = [
                f"{stage.gate.name}: {check.name}: {check.advice}"
                for stage in found.stages
                for check in stage.gate.failures
            ]
            agreement[name] = found
    print(f"\n{rows}: dimensions with one another (solved), and the best tenth of the same judge asked again")
    for name, found in agreement.items():
        print(f"  {name}: {found.halo:.2f}, {found.again:.2f}")
    print(f"\n{rows}: why")
    for (name, setting), sentences in messages.items():
        print("\n".join(f"  {name}, {setting}: {sentence}" for sentence in sentences) or f"  {name}, {setting}: passes")


def prepared(given: str | None, root: Path, settings: Sequence[str]) -> Run:
    """Open a run on a copy of given data, or build its data."""
    root.mkdir()
    run = open_run(workspace=root, overrides=settings)
    if given is not None:
        shutil.copytree(Path(given) / "data", root / "data")
        return run
    build_seed(run)
    write_metrics(run)
    write_balanced(run)
    return run


def main(given: Sequence[str]) -> int:
    """Test embedded rows, then public ones if they exist."""
    embedded, public = (*given, None, None)[:2]
    sources: Mapping[str, tuple[str | None, tuple[str, ...]]] = {
        "embedded": (embedded, ("pool.n=3000",)),
        "public": (public, ("pool.n=600", f'sources.use="{PUBLIC}"')),
    }
    with tempfile.TemporaryDirectory() as folder:
        for rows, (workspace, settings) in sources.items():
            if rows == "public" and not PUBLIC.is_dir():
                return not_run(
                    "simulated judges on public rows", "there is no folder shared/data next to the project",
                    "put the public files there, as docs/pool.md describes",
                )  # fmt: skip
            root = Path(folder) / rows
            tried(rows, prepared(workspace, root, settings), root, settings)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
