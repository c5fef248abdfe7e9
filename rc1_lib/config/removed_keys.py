"""Configuration keys of the version before, and the sentence that refuses each.

A key goes when nobody has a reason to change it: its value is then a constant next to the code that uses it. The
sentences are kept for one version, so that a file of the version before says what to change.
"""

from __future__ import annotations

from collections.abc import Mapping

_MOVED: Mapping[str, str] = {
    **{f"training.{engine}": "training.update, which all own engines share" for engine in ("dpo", "sft")},
    **{
        f"training.{engine}.{key}": f"training.update.{key}, which all own engines share"
        for engine in ("ppo", "grpo", "dpo", "sft")
        for key in (
            "epochs", "minibatches", "micro_tokens", "max_grad_norm", "entropy_coef", "kl_stop", "adaptive_kl",
            "kl_gain", "kl_bound", "group_size",
        )
    },
}  # fmt: skip
"""Key, or section -> where it is now."""
_FIXED: Mapping[str, str] = {
    "training.ppo.gamma": "1, no discount per token",
    "training.ppo.value_clip": "1e9, without effect",
}
"""Key, or section -> the value that it always has now."""


def why_removed(key: str) -> str | None:
    """Why a dotted key of the version before is refused, and what to do; None if it was none."""
    if key in _MOVED:
        return f"the key '{key}' is now {_MOVED[key]}; write it there"
    if key in _FIXED:
        return f"the key '{key}' is gone: its value is always {_FIXED[key]}; remove the line"
    return None
