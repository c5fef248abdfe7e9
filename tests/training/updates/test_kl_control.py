"""The controllers of the KL coefficient."""

from __future__ import annotations

import pytest

from rc1_lib.training.updates.losses import AdaptiveKL


def adaptive(coef: float = 0.05) -> AdaptiveKL:
    return AdaptiveKL(coef, target=2.0)


@pytest.mark.parametrize(
    ("kl", "expected"),
    [
        (2.0, 0.05),
        (2.2, 0.05 * 1.01),
        (1.8, 0.05 * 0.99),
        (20.0, 0.05 * 1.02),
        (-3.0, 0.05 * 0.98),
    ],
)
def test_adaptive_coefficient_moves_towards_the_target_within_its_limit(kl: float, expected: float) -> None:
    control = adaptive()
    control.update(kl)
    assert control.coef == pytest.approx(expected)


def test_adaptive_coefficient_stays_within_a_factor_of_ten() -> None:
    for kl, bound in ((0.0, 0.005), (9.0, 0.5)):
        control = adaptive()
        for _ in range(1000):
            control.update(kl)
        assert control.coef == pytest.approx(bound)


def test_resumed_controller_continues_with_the_same_coefficient() -> None:
    first = adaptive()
    for kl in (3.0, 0.5, 2.1):
        first.update(kl)
    second = adaptive()
    second.load_state_dict(first.state_dict())
    first.update(2.3)
    second.update(2.3)
    assert first.coef == second.coef
