"""Green verdicts that are given again on the same bytes, under the same configuration, by the same code.

They are known to this process, and kept for the next in a folder of the user's own (`rc1_lib.provenance.own_folder`).
What is read from it is judged again as far as it can be: its comparisons, and that all that decided it is what it is
now.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import orjson

from rc1_lib.errors import RC1Error
from rc1_lib.provenance.own_folder import keep, kept
from rc1_lib.records import GateResult, Status
from rc1_lib.task_specs import added
from rc1_lib.workspace.artifacts import Workspace, sha256_json


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
    if added():  # no fingerprint covers the source of a task that was registered
        return
    found = {"decisive": decisive, "verdict": result.to_dict()}
    lines = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
    keep(place, _file(result.name), orjson.dumps({**found, "sha256": sha256_json(found)}, option=lines))


def _read(place: Workspace, name: str, decisive: str) -> GateResult | None:
    content = None if added() else kept(place, _file(name))
    if content is None:
        return None
    try:
        found = orjson.loads(content)
        if found.pop("sha256") != sha256_json(found) or found["decisive"] != decisive:
            return None
        result = GateResult.from_dict(found["verdict"])
    except (ValueError, KeyError, TypeError, AttributeError, RC1Error):
        return None  # nothing that `remember` wrote
    return result if result.name == name and result.status is Status.PASSED else None


def _file(name: str) -> str:
    return f"{name}.json"
