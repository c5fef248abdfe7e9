"""Green verdicts that are given again on the same bytes, under the same configuration, by the same code.

They are known to this process, and kept for the next in a folder of the user's own. That lies outside the workspace,
so that whoever can merely write the workspace can put no verdict there. What is read from it is judged again as far as
it can be: its comparisons, and that all that decided it is what it is now.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, replace
from pathlib import Path

from rc1_lib.artifacts import Workspace, read_json, sha256_json, write_json
from rc1_lib.errors import RC1Error
from rc1_lib.records import GateResult, Status
from rc1_lib.run import VERDICTS
from rc1_lib.task_specs import added


@dataclass(frozen=True, slots=True)
class Known:
    """The newest green verdict of a gate.

    Attributes:
        decisive: fingerprint of all that decided it.
        result: the verdict.
    """

    decisive: str
    result: GateResult


_HERE: dict[str, Known] = {}


def newest(name: str) -> Known | None:
    """What this process found green last of a gate."""
    return _HERE.get(name)


def adopt(known: Known) -> None:
    """Know what another process of this very program has found green."""
    _HERE[known.result.name] = known


def recall(place: Workspace, name: str, decisive: str) -> GateResult | None:
    """The green verdict that was found on the same grounds, by this process or an earlier one; None where none was."""
    known = _HERE.get(name)
    if known is None or known.decisive != decisive:
        result = _read(place, name, decisive)
        if result is None:
            return None
        known = _HERE[name] = Known(decisive, replace(result, given_again=True))
    return known.result


def remember(place: Workspace, decisive: str, result: GateResult) -> None:
    """Keep a green verdict for this process and, where there is a folder for it, for the next."""
    _HERE[result.name] = Known(decisive, result)
    folder = _folder(place)
    if folder is None or added():  # no fingerprint covers the source of a task that was registered
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_ours(folder):
            kept = {"decisive": decisive, "verdict": result.to_dict()}
            write_json(folder / f"{result.name}.json", {**kept, "sha256": sha256_json(kept)})
    except (OSError, RC1Error):
        return  # the next process judges anew


def _read(place: Workspace, name: str, decisive: str) -> GateResult | None:
    folder = _folder(place)
    if folder is None or added() or not _is_ours(folder):
        return None
    try:
        kept = read_json(folder / f"{name}.json")
        if kept.pop("sha256") != sha256_json(kept) or kept["decisive"] != decisive:
            return None
        result = GateResult.from_dict(kept["verdict"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RC1Error):
        return None  # not there, or nothing that `remember` wrote
    return result if result.name == name and result.status is Status.PASSED else None


def _folder(place: Workspace) -> Path | None:
    """Where verdicts on a workspace's files are kept; None where they cannot be, or are not to be."""
    named = os.environ.get(VERDICTS)
    if named is None:
        caches = os.environ.get("XDG_CACHE_HOME", "")
        home = os.path.expanduser("~")
        named = os.path.join(caches if os.path.isabs(caches) else os.path.join(home, ".cache"), "rc1", "verdicts")
    folder = Path(named).expanduser()
    if not named or not folder.is_absolute():
        return None
    root = place.root.resolve()
    own = folder.resolve() / sha256_json(str(root))[:32]
    return None if own.is_relative_to(root) else own


def _is_ours(folder: Path) -> bool:
    """Whether nobody else can write there, as far as its owner and mode tell."""
    try:
        found = folder.stat()
    except OSError:
        return False
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
