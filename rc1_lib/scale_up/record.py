"""Record that a size passed, in a report that counts only for exactly the same files, judge and code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from rc1_lib.difficulty.derived import BALANCED, METRICS
from rc1_lib.evidence import described
from rc1_lib.judge.prompt import scoring_settings
from rc1_lib.provenance.code import code_sha256
from rc1_lib.provenance.derived import Artifact
from rc1_lib.records import GateResult
from rc1_lib.run import Run
from rc1_lib.scale_up.looks import Look
from rc1_lib.scale_up.sizes import Step, rows_artifact, sized
from rc1_lib.workspace.artifacts import FileState, file_state, now, read_json, recorded_write, sha256_json

_KIND = "scale_up"
_PACKS = ("templates", "reference_templates")


def write_record(whole: Run, step: Step, looks: Sequence[Look]) -> str:
    """Write the report of a size that passed, and return its path, relative to the workspace."""
    where = _report(whole, step)
    body = {"time": now(), "profile": whole.config.profile, "looks": [look_body(look) for look in looks]}
    with recorded_write(whole.workspace, where, {"kind": _KIND}) as stream:
        stream.write(orjson.dumps(body, option=orjson.OPT_INDENT_2) + b"\n")
    return where


def read_record(whole: Run, step: Step) -> tuple[Look, ...]:
    """Return the looks at a size that passed before; empty if anything that decides its verdict has changed."""
    if not all(artifact.state(run) is FileState.FRESH for run, artifact in _files(whole, step)):
        return ()
    where = _report(whole, step)
    if file_state(whole.workspace, where, None, _KIND) is not FileState.FRESH:
        return ()
    try:
        looks = tuple(_look(body) for body in read_json(whole.workspace.path(where))["looks"])
    except (ValueError, KeyError, TypeError):
        return ()
    expected = [(step.smaller, True), (step.size, False)] if step.smaller else [(step.size, False)]
    as_expected = [(look.size, look.again) for look in looks] == expected
    return looks if as_expected and all(look.passed for look in looks) else ()


def look_body(look: Look) -> dict[str, Any]:
    """Return a look as JSON for reports, without the offending rows."""
    results = [{**result.to_dict(), "offenders": ()} for result in look.results]
    return {"size": look.size, "again": look.again, "pass": look.passed, "gates": results}


def _look(body: Mapping[str, Any]) -> Look:
    return Look(body["size"], body["again"], tuple(GateResult.from_dict(gate) for gate in body["gates"]))


def _files(whole: Run, step: Step) -> list[tuple[Run, Artifact]]:
    """Return the inputs of a size's verdict: its files, and those of the size before."""
    sizes = (step.smaller, step.size) if step.smaller else (step.size,)
    return [
        (sized(whole, size), artifact) for size in sizes for artifact in (rows_artifact(whole, size), METRICS, BALANCED)
    ]


def _key(whole: Run, step: Step) -> str:
    """Return 12 hex digits of the SHA-256 of everything that decides a size's verdict."""
    config = whole.config
    decisive = {
        "step": [step.smaller, step.size],
        "files": [artifact.sha256(run) for run, artifact in _files(whole, step)],
        "packs": [described(name).sha256(whole) for name in _PACKS],
        "scoring": scoring_settings(whole),
        "seed": config.pool.seed,
        "datasets": dict(config.datasets),
        "gates": config.gates.model_dump(
            mode="json", include={"shared", "diversity", "difficulty", "mix", "stability"}
        ),
        "waivers": config.gates.waivers,
        "not_applicable": config.why_not_judged,
        "code": code_sha256(),
    }
    return sha256_json(decisive)[:12]


def _report(whole: Run, step: Step) -> str:
    return f"reports/scale_up_{step.size}_{_key(whole, step)}.json"
