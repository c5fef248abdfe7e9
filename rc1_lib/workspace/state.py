"""What RC1 keeps for a workspace in a folder of this user, because it must not come with the workspace.

Somebody may have sent a workspace. None of its files may decide with whom RC1 talks, so its Prefect server, with
database and password, lies here.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path

from rc1_lib.errors import ConfigError

BASE = "XDG_STATE_HOME"
"""Environment variable with the folder of all programs' states; without it `~/.local/state`."""


def state_of(workspace: Path) -> Path:
    """Return the workspace's folder, by the workspace's absolute path; it need not exist.

    Raises:
        ConfigError: when there is no folder that only this user may use.
    """
    whole = os.fsencode(workspace.resolve())
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", workspace.resolve().name)[:40]
    return _checked(_root()) / f"{name}-{hashlib.sha256(whole).hexdigest()[:16]}"


def make_state(workspace: Path) -> Path:
    """Create the workspace's folder if it does not exist, readable by this user only, and return it.

    Raises:
        ConfigError: when it cannot be created, or others may use it.
    """
    folder = state_of(workspace)
    try:
        folder.parent.parent.mkdir(parents=True, exist_ok=True)
        for one in (folder.parent, folder):
            one.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be created ({error.strerror}); {_ADVICE}") from None
    _checked(folder.parent)
    return folder


_ADVICE = f"set {BASE} to a folder of this machine that only you may use"


def _root() -> Path:
    try:
        home = Path.home()
    except RuntimeError:  # a user id without an entry and without HOME, as in a container
        advice = "set HOME to a folder of this machine that only you may use"
        raise ConfigError(f"this user ({os.getuid()}) has no home folder, which Prefect needs; {advice}") from None
    named = Path(os.environ.get(BASE, ""))
    return named / "rc1" if named.is_absolute() else home / ".local/state/rc1"


def _checked(root: Path) -> Path:
    """Return the folder of all workspaces if it is this user's alone; others could name a server in it."""
    try:
        found = root.lstat()
    except FileNotFoundError:
        return root
    except OSError as error:
        raise ConfigError(f"{root}: cannot be read ({error.strerror}); {_ADVICE}") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise ConfigError(
            f"{root}: is not a folder that only you may use (expected your own, with mode 0700); chmod 700 it if it is "
            f"yours, or {_ADVICE}"
        )
    return root
