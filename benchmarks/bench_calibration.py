"""Compare the calibration of weights with a plain implementation.

    python benchmarks/bench_calibration.py [ROWS] [RESAMPLES]

Prints seconds and ratios from one run. The plain implementation does what a short script would do: it copies the rows
of each resample, minimises their mean squared error with SciPy's SLSQP, and lets SciPy rank the rows that were not
drawn.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

sys.path.insert(0, str(Path(__file__).parents[1]))

from rc1_lib.numbers.uncertainty import CONFIDENCE
from rc1_lib.reward.calibration import Calibration, calibrate_weights
from rc1_lib.reward.intervals import draw_counts, group_folds, group_numbers
from rc1_lib.reward.rank_agreement import kendall_tau_b
from rc1_lib.reward.weight_fit import kkt_residual, solve
from rc1_lib.run import published_config

Vector = NDArray[np.float64]
SETTINGS = published_config().calibration
CAP = published_config().gates.weights.max_weight
DIMENSIONS = 9
PRIOR = np.array([0.2, 0.2, 0.15, 0.15, 0.1, 0.1, 0.1, 0, 0])


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds and the result of `work()`."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def made_rows(n: int) -> tuple[Vector, Vector, NDArray[np.int64]]:
    """Generate scores with and without ties, successes that depend on them, and about three rows per group."""
    rng = np.random.default_rng(0)
    scores = rng.random((n, DIMENSIONS))
    scores[:, 3:] = np.round(scores[:, 3:] * 4) / 4
    target = rng.binomial(1, scores @ rng.dirichlet(np.full(DIMENSIONS, 0.5)))
    return scores, target.astype(np.float64), rng.integers(0, max(1, n // 3), n)


def ours(scores: Vector, target: Vector, groups: NDArray[np.int64], boot: int) -> Calibration:
    """Calibrate as `rc1 weight-calib` does."""
    names = [f"dimension{column}" for column in range(DIMENSIONS)]
    return calibrate_weights(
        scores,
        target,
        groups,
        names=names,
        prior=dict(zip(names, PRIOR.tolist(), strict=True)),
        l2=SETTINGS.l2,
        max_weight=CAP,
        cv=SETTINGS.cv,
        boot=boot,
        seed=SETTINGS.seed,
        confidence=CONFIDENCE,
    )


def minimised(loss: Callable[[Vector], float], slope: Callable[[Vector], Vector]) -> Vector:
    """Minimise the loss within the bounds by SLSQP, starting at the prior."""
    found = optimize.minimize(  # type: ignore[call-overload]
        loss,
        PRIOR,
        jac=slope,
        method="SLSQP",
        bounds=[(0, CAP)] * DIMENSIONS,
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1, "jac": np.ones_like},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return np.asarray(found.x, np.float64)


def plain_fit(scores: Vector, target: Vector) -> Vector:
    """Fit the weights to the rows themselves."""

    def loss(weights: Vector) -> float:
        return float(np.mean((scores @ weights - target) ** 2) + SETTINGS.l2 * np.sum((weights - PRIOR) ** 2))

    def slope(weights: Vector) -> Vector:
        misses = 2 * scores.T @ (scores @ weights - target) / len(target)
        return np.asarray(misses + 2 * SETTINGS.l2 * (weights - PRIOR), np.float64)

    return minimised(loss, slope)


def plain(scores: Vector, target: Vector, groups: NDArray[np.int64], boot: int) -> tuple[Vector, list[Vector]]:
    """Fit and compare on copied rows as `ours` does, except for the AUC; return the weights, also of the folds."""
    numbers, count = group_numbers(groups)
    candidates = [np.full(DIMENSIONS, 1 / DIMENSIONS), PRIOR]

    def judge(rows: NDArray[np.bool_], weights: Vector) -> None:
        for candidate in (weights, *candidates):
            stats.spearmanr(scores[rows] @ candidate, target[rows])
            np.mean(np.abs(scores[rows] @ candidate - target[rows]))

    sizes = np.bincount(numbers).astype(np.float64)
    successful = np.bincount(numbers, target) / sizes > target.mean()  # folds are stratified by success
    fold_of = group_folds(sizes, SETTINGS.cv, SETTINGS.seed, successful.astype(np.intp))[numbers]
    folds = []
    for fold in range(SETTINGS.cv):
        folds.append(plain_fit(scores[fold_of != fold], target[fold_of != fold]))
        judge(fold_of == fold, folds[-1])
    rng = np.random.default_rng([SETTINGS.seed, 1])
    for _ in range(boot):
        times = draw_counts(rng, count)[numbers]
        judge(times == 0, plain_fit(np.repeat(scores, times, axis=0), np.repeat(target, times)))
    return plain_fit(scores, target), folds


def many_problems(number: int) -> list[dict[str, Any]]:
    """Generate Gram matrices and moments of small samples, for which the optimum is hard to find."""
    rng = np.random.default_rng(1)
    made = []
    for _ in range(number):
        scores, target = rng.random((60, DIMENSIONS)), rng.integers(0, 2, 60)
        made.append({"gram": scores.T @ scores / 60, "moment": scores.T @ target / 60, "prior": PRIOR})
    return made


def slsqp(gram: Vector, moment: Vector, prior: Vector) -> Vector:
    """Solve the quadratic problem by SLSQP."""

    def loss(weights: Vector) -> float:
        apart = weights - prior
        return float(weights @ gram @ weights - 2 * moment @ weights + SETTINGS.l2 * apart @ apart)

    def slope(weights: Vector) -> Vector:
        return np.asarray(2 * (gram @ weights - moment) + 2 * SETTINGS.l2 * (weights - prior), np.float64)

    return minimised(loss, slope)


def report(name: str, here: float, there: float) -> None:
    """Print one line of the table."""
    print(f"{name:46} {here:8.3f} s {there:8.3f} s   {there / here:6.1f} x")


def main() -> None:
    """Time the calibration, its solver and Kendall's tau, and the plain implementation of each."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    boot = int(sys.argv[2]) if len(sys.argv) > 2 else SETTINGS.boot
    made = made_rows(rows)
    print(f"{'':46} here       plain      ratio")
    here, calibration = timed(lambda: ours(*made, boot))
    there, (weights, folds) = timed(lambda: plain(*made, boot))
    report(f"{rows} rows, {DIMENSIONS} dimensions, cv {SETTINGS.cv}, boot {boot}", here, there)
    apart = np.abs(weights - list(calibration.weights.values())).max()
    for fold, expected in zip(calibration.folds, folds, strict=True):
        apart = max(apart, np.abs(expected - list(fold.weights.values())).max())
    print(f"  largest difference of a weight, all rows and folds: {apart:.1e}")
    assert apart < 1e-3, "both ways must find the same weights"

    problems = many_problems(1 + SETTINGS.cv + SETTINGS.boot)
    here, solutions = timed(lambda: [solve(**problem, l2=SETTINGS.l2, max_weight=CAP) for problem in problems])
    there, answers = timed(lambda: [slsqp(**problem) for problem in problems])
    report(f"{len(problems)} times the solver alone", here, there)
    # SLSQP stops a rounding error away from active bounds; that error is not counted against it.
    answers = [np.where(answer < 1e-9, 0, np.where(answer > CAP - 1e-9, CAP, answer)) for answer in answers]
    worst = max(solution.kkt_residual for solution in solutions)
    theirs = max(
        kkt_residual(answer, **problem, l2=SETTINGS.l2, max_weight=CAP)
        for answer, problem in zip(answers, problems, strict=True)
    )
    print(f"  distance from the optimality conditions: here {worst:.1e}, SLSQP {theirs:.1e}")

    rng = np.random.default_rng(2)
    x = rng.integers(0, 60, 245) / 60
    y = x + np.round(rng.normal(0, 0.3, 245), 2)
    counts = [draw_counts(rng, 245) for _ in range(1000)]
    here, taus = timed(lambda: [kendall_tau_b(x, y, times) for times in counts])
    there, expected = timed(lambda: [stats.kendalltau(np.repeat(x, times), np.repeat(y, times))[0] for times in counts])
    report("Kendall's tau-b, 245 rows, 1000 resamples", here, there)
    assert np.allclose(taus, expected), "both ways must find the same taus"


if __name__ == "__main__":
    main()
