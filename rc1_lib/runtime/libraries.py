"""The installed libraries: which ones need an extra, what the environment may not change, and notices to silence.

The extra `train` installs what runs a policy, `hub` what reads data sets from the hub, `gguf` llama.cpp.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from importlib.machinery import PathFinder
from importlib.util import find_spec

from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.workspace.artifacts import CODE_ROOT

TRAINING = ("accelerate", "bitsandbytes", "peft", "safetensors", "tokenizers", "torch", "transformers", "trl")
"""Libraries that only training imports."""
_TRAIN = "training needs the extra: pip install 'rc1[train]'"
_HUB = "data sets from the hub need the extra: pip install 'rc1[hub]', or give a folder with their files as the source"
_LLAMA_CPP, _GGUF = ("gguf", "xllamacpp"), "llama.cpp and its files need the extra: pip install 'rc1[gguf]'"
_SENTENCES = {
    **dict.fromkeys((*TRAINING, "tensorboard", "huggingface_hub"), _TRAIN),
    "datasets": _HUB,
    **dict.fromkeys(_LLAMA_CPP, _GGUF),
}


def lacking_for_training() -> tuple[str, ...]:
    """Return the libraries of the extra `train` that are not installed."""
    return tuple(name for name in TRAINING if find_spec(name) is None)


def check_training() -> None:
    """Check that the extra `train` is installed.

    Raises:
        RC1Error: names the extra, and which of its libraries are missing.
    """
    if lacking := lacking_for_training():
        raise RC1Error(f"{_TRAIN} (not installed: {', '.join(lacking)})")


def check_hub() -> None:
    """Check that the extra `hub` is installed.

    Raises:
        RC1Error: names the extra and its library.
    """
    if find_spec("datasets") is None:
        raise RC1Error(f"{_HUB} (not installed: datasets)")


def check_llama_cpp() -> None:
    """Check that the extra `gguf` is installed.

    Raises:
        RC1Error: names the extra, and which of its libraries are missing.
    """
    if lacking := [name for name in _LLAMA_CPP if find_spec(name) is None]:
        raise RC1Error(f"{_GGUF} (not installed: {', '.join(lacking)})")


def extra_of(error: Exception) -> str:
    """Return which extra an import error is about, as a sentence; "" for other errors."""
    if not isinstance(error, ModuleNotFoundError):
        return ""
    name = (error.name or "").partition(".")[0]
    sentence = _SENTENCES.get(name)
    return f"{sentence} (not installed: {name})" if sentence and find_spec(name) is None else ""


_OWN = ("deployments", "flows", "tasks")
"""RC1's packages with names that other projects use too."""


def own_environment() -> None:
    """Remove what would change RC1 in this process and in those that it starts.

    pandera's variables switch its checks off. A folder of PYTHONPATH may have `tasks.py`; an empty entry there is the
    current folder.
    """
    for name in [name for name in os.environ if name.startswith("PANDERA_")]:
        del os.environ[name]
    if hidden_packages():
        sys.path.insert(0, str(CODE_ROOT))
        os.environ["PYTHONPATH"] = os.pathsep.join([str(CODE_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


def hidden_packages() -> list[str]:
    """Return RC1's packages whose name finds something else on Python's path."""
    found = {name: PathFinder.find_spec(name) for name in _OWN}  # None: an editable installation finds it elsewhere
    places = {name: os.path.realpath(spec.origin or "") for name, spec in found.items() if spec}
    return [name for name, place in places.items() if place != str(CODE_ROOT / name / "__init__.py")]


_NAMES = ("all_proxy", "http_proxy", "https_proxy")


def check_proxies() -> None:
    """Reject proxies with which the clients of Prefect and of a judge would fail.

    Raises:
        ConfigError: names the variable but not its value, which may contain a password.
    """
    for name, value in os.environ.items():
        if name.lower() in _NAMES and value.strip().lower().startswith("socks") and find_spec("socksio") is None:
            raise ConfigError(
                f"{name}: names a SOCKS proxy, expected an HTTP one; unset it (only a live judge and downloads need "
                f"the network), or install httpx[socks]"
            )


def past_proxies() -> dict[str, str]:
    """Return the variables with which no client sends what is for this machine through a proxy."""
    here = {"127.0.0.1", "localhost"}
    known = [name.strip() for name in (os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or "").split(",")]
    exempt = ",".join([*filter(None, known), *sorted(here - set(known))])
    return {"no_proxy": exempt, "NO_PROXY": exempt}


def quieten(*, hub: bool) -> None:
    """Silence notices of libraries about which a user can do nothing.

    Args:
        hub: whether something may have to be downloaded; progress bars then stay.
    """
    if not hub:
        # transformers reads this once, when it is imported, which takes seconds and is not done here.
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        if "transformers" in sys.modules:
            from transformers.utils.logging import disable_progress_bar

            disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # that a faster kernel is not installed
    # Warnings of these libraries about each other, which users of RC1 cannot fix.
    for name in ("transformers", "peft", "trl", "accelerate"):
        warnings.filterwarnings("ignore", category=FutureWarning, module=name)
