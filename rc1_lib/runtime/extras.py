"""What only an extra installs: `train` what computes with a policy, `hub` what reads data sets of the hub."""

from __future__ import annotations

from importlib.util import find_spec

from rc1_lib.errors import RC1Error

TRAINING = ("accelerate", "bitsandbytes", "peft", "safetensors", "tokenizers", "torch", "transformers", "trl")
"""What training imports, and the rest of RC1 does not."""
_TRAIN = "training needs the extra: pip install 'rc1[train]'"
_HUB = "data sets of the hub need the extra: pip install 'rc1[hub]', or give a folder with their files as the source"
_SENTENCES = {**dict.fromkeys((*TRAINING, "tensorboard", "huggingface_hub"), _TRAIN), "datasets": _HUB}


def lacking_for_training() -> tuple[str, ...]:
    """Which libraries of the extra `train` are not installed."""
    return tuple(name for name in TRAINING if find_spec(name) is None)


def check_training() -> None:
    """Refuse to begin what needs the extra `train` where it is not installed.

    Raises:
        RC1Error: naming the extra, and what is missing of it.
    """
    if lacking := lacking_for_training():
        raise RC1Error(f"{_TRAIN} (not installed: {', '.join(lacking)})")


def extra_of(error: Exception) -> str:
    """Which extra an error of an import comes from, as a sentence; "" for every other error."""
    if not isinstance(error, ModuleNotFoundError):
        return ""
    name = (error.name or "").partition(".")[0]
    sentence = _SENTENCES.get(name)
    return f"{sentence} (not installed: {name})" if sentence and find_spec(name) is None else ""
