"""Which gate of the calibration takes which judge, and for what reason it refuses one: simulated judges, both rows.

    python benchmarks/bench_simulated_judges.py [EMBEDDED [PUBLIC]]

The judges are those of `tests/calibration/simulated_judge.py`. Each grades 600 rows, the shadow set, its takes and the
attack's dialogues, and every stage of `rc1 calibrate` is judged, whether the one before fails or not: by the published
settings, with a weaker pull to the old weights, and at profile local's price of a needless question. Data are those of
the workspaces named, which are only read; where none is named, 3,000 embedded rows and 600 of the public files beside
the project are built in a passing folder. Prints a table, of which docs/experiments/good-judges.md shows a part, and
with what words each gate fails. Seven minutes of one core.
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

from rc1_lib.calibration.judged_rows import JudgedRows, judge_rows
from rc1_lib.calibration.overclar_ablation import overclar_ablation
from rc1_lib.calibration.reward_hacking import attack_reward
from rc1_lib.calibration.shadow_run import CALIBRATED, baseline_run, shadow_run
from rc1_lib.calibration.weight_calib import weight_calib
from rc1_lib.difficulty.steps import write_balanced, write_metrics
from rc1_lib.gate_report import GateReport
from rc1_lib.pool.checked_rows import rows_of
from rc1_lib.pool.derived import SHADOW
from rc1_lib.pool.seed import build_seed
from rc1_lib.reward.rank_agreement import spearman, top_overlap
from rc1_lib.reward.terms import add_old_score
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.calibration.simulated_judge import Simulated

PUBLIC = PROJECT_ROOT.parent / "shared" / "data"
SETTINGS = {
    "published": ("overclar.alpha=0.07", "calibration.l2=0.1"),
    "weak pull": ("overclar.alpha=0.07", "calibration.l2=0.01"),
    "price 0.25": ("overclar.alpha=0.25", "calibration.l2=0.1"),
}
"""Of the pull to the old weights and the price of a needless question; the last are profile local's."""
FEW = ("gates.shared.resamples=200",)
"""Intervals beside figures; those that decide something, of the calibration, are as shipped."""
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
    """The run's own judge, asked once about the same dialogues."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, ...], JudgedRows] = {}

    def __call__(self, run: Run, rows: pl.DataFrame, **options: Any) -> JudgedRows:
        """Like `judge_rows`."""
        key = tuple(rows["id"])
        if key not in self.known:
            self.known[key] = judge_rows(run, rows, **options)
        return self.known[key]


@dataclass(frozen=True, slots=True)
class Trial:
    """What every stage found of a judge, and how well its grades agree with themselves.

    Attributes:
        stages: the outcomes, in order.
        halo: mean rank correlation of its dimensions with one another, on solved dialogues of the shadow set.
        again: overlap of the best tenth by the old score with that of the same judge asked again.
    """

    stages: Sequence[GateReport]
    halo: float
    again: float


def trial(run: Run, simulated: Simulated | None, remembering: Remembering) -> Trial:
    """Every stage with this judge."""

    def of(one: Simulated | None) -> Callable[..., JudgedRows]:
        if one is None:
            return remembering
        return lambda run, rows, **options: one.on(remembering(run, rows, **options), rows)

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
    first, again = (add_old_score(one(run, rows).frame, old) for one in (judge, second))
    solved = first.filter("solved")
    names = [name for name in old if solved[name].n_unique() > 1]
    pairs = [(a, b) for a in names for b in names if a < b]
    halo = float(np.mean([spearman(solved[a].to_numpy(), solved[b].to_numpy()) for a, b in pairs]))
    return Trial(stages, halo, top_overlap(first["old"].to_numpy(), again["old"].to_numpy(), 0.1))


def line(rows: str, name: str, setting: str, found: Trial) -> str:
    """A judge's line of the table."""
    _, calibration, attack, _, shadow = (one.body for one in found.stages)
    weights, free = calibration["calibration"], shadow["without_price_of_questions"]
    least = min(one["margin"] for one in attack["policies"].values() if one["margin"] is not None)
    drop = next(check.value for check in found.stages[3].gate.checks if check.name == "rate drop, %")
    failed = [f"{one.gate.name}: {check.name}" for one in found.stages for check in one.gate.failures]
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
    """Print the table of these rows, and what the gates that fail say."""
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}", flush=True)
    remembering, said, agreement = Remembering(), {}, {}
    for name, simulated in JUDGES.items():
        for setting, chosen in SETTINGS.items():
            found = trial(open_run(workspace=root, overrides=(*settings, *FEW, *chosen)), simulated, remembering)
            print(line(rows, name, setting, found), flush=True)
            said[name, setting] = [
                f"{one.gate.name}: {check.name}: {check.advice}" for one in found.stages for check in one.gate.failures
            ]
            agreement[name] = found
    print(f"\n{rows}: dimensions with one another (solved), and the best tenth of the same judge asked again")
    for name, found in agreement.items():
        print(f"  {name}: {found.halo:.2f}, {found.again:.2f}")
    print(f"\n{rows}: why")
    for (name, setting), sentences in said.items():
        print("\n".join(f"  {name}, {setting}: {one}" for one in sentences) or f"  {name}, {setting}: passes")


def prepared(given: str | None, root: Path, settings: Sequence[str]) -> Run:
    """A run on copied data, or on data that are built."""
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
    """Embedded rows, then public ones where they are there."""
    embedded, public = (*given, None, None)[:2]
    sources: Mapping[str, tuple[str | None, tuple[str, ...]]] = {
        "embedded": (embedded, ("pool.n=3000",)),
        "public": (public, ("pool.n=600", f'sources.use="{PUBLIC}"')),
    }
    with tempfile.TemporaryDirectory() as folder:
        for rows, (workspace, settings) in sources.items():
            if rows == "public" and not PUBLIC.is_dir():
                return not_run(
                    "simulated judges on public rows", "there is no folder shared/data beside the project",
                    "put the public files there, as docs/pool.md has them",
                )  # fmt: skip
            root = Path(folder) / rows
            tried(rows, prepared(workspace, root, settings), root, settings)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
