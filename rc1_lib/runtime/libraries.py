"""The installed libraries: what only an extra installs, proxies that a client cannot use, and notices to silence.

`train` installs what computes with a policy, `hub` what reads data sets of the hub.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from importlib.util import find_spec

from rc1_lib.errors import ConfigError, RC1Error

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


_NAMES = ("all_proxy", "http_proxy", "https_proxy")


def check_proxies() -> None:
    """Reject proxies on which the clients of Prefect and of a judge would fail.

    Raises:
        ConfigError: names the variable but not its value, which may contain a password.
    """
    for name, value in os.environ.items():
        if name.lower() in _NAMES and value.strip().lower().startswith("socks") and find_spec("socksio") is None:
            raise ConfigError(
                f"{name}: names a SOCKS proxy, expected an HTTP one; unset it (only a live judge and downloads need "
                f"the network), or install httpx[socks]"
            )


def quieten(*, hub: bool) -> None:
    """Silence the notices of libraries that a user can do nothing about.

    Args:
        hub: whether something may have to be downloaded, which takes so long that its bars are welcome.
    """
    if not hub:
        # Read once, when transformers is imported, which takes seconds and is left to whoever needs it.
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        if "transformers" in sys.modules:
            from transformers.utils.logging import disable_progress_bar

            disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # that a faster kernel is not installed
    # Libraries about each other: nothing that whoever runs RC1 could change.
    for name in ("transformers", "peft", "trl", "accelerate"):
        warnings.filterwarnings("ignore", category=FutureWarning, module=name)
