"""DPO's beta, which is `kl_coef`: how much the distance from the reference counts (Rafailov et al. 2023)."""

from __future__ import annotations

from rc1_lib.errors import ConfigError


def check_beta(kl_coef: float) -> None:
    """Refuse a beta at which every pair has the same loss.

    Raises:
        ConfigError: when it is 0.
    """
    if kl_coef == 0:
        raise ConfigError("kl_coef: found 0, but it is DPO's beta, and at 0 nothing is learned; write 0.1")
