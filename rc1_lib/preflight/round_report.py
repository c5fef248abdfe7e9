"""The report of a round: every gate's verdict, the files that it read, and what was loosened or waived."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
import polars as pl

from rc1_lib.config.file import departures
from rc1_lib.config.foreign_gates import foreign_facts
from rc1_lib.errors import RowError
from rc1_lib.evidence import Evidence
from rc1_lib.gates.gate_list import gates_of_round
from rc1_lib.pool.derived import POOL
from rc1_lib.preflight.round_files import FAILED, PASSED
from rc1_lib.provenance.code import code_sha256
from rc1_lib.provenance.git import GitState, code_named, read_code
from rc1_lib.records import PASSING, GateResult, Status, not_applicable_of, waivers_of
from rc1_lib.rows.frame import read_rows
from rc1_lib.run import Run, published_config
from rc1_lib.workspace.artifacts import atomic_write, now, read_json, write_checksum, write_json, write_text

_FIRST_NAMES = {"shadow_eval": "shadow", "seed_pool": "pool", "seed_pool_balanced": "balanced", "ppo_cfg": "config"}
"""Keys of the original `round1.json` -> ours."""


def round_passed(results: Sequence[GateResult], number: int) -> bool:
    """Return whether every gate of the round passed, was waived by name or is not applicable."""
    found = {result.name: result.status for result in results}
    return all(found.get(spec.name) in PASSING for spec in gates_of_round(number))


def tally(results: Sequence[GateResult]) -> str:
    """Return `18 of 22 gates passed, 2 failed, 2 waived`."""
    counts = Counter(result.status for result in results)
    passed = f"{counts.pop(Status.PASSED, 0)} of {len(results)} gates passed"
    return ", ".join([passed, *(f"{count} {status.value}" for status, count in counts.items())])


def write_round(run: Run, number: int, results: Sequence[GateResult]) -> dict[str, Any]:
    """Write the round's report, the rows at fault and the git state, and return the report.

    A failed second round has another file name, and an earlier pass is removed, so that `round2_pass.json` always is
    the latest second round.
    """
    evidence = Evidence(run)
    passed = round_passed(results, number)
    place = run.workspace
    report: dict[str, Any] = {
        "round": f"round{number}",
        "pass": passed,
        "profile": run.config.profile,
        "time": (at := now()),
        "ts": at,
        **code_named(read_code()),
        "code_sha256": code_sha256(),
        "config_sha256": run.config_sha256,
        "foreign_gates": foreign_facts(),
        "judge": {"provider": run.config.judge.provider, "spec": run.config.judge.spec},
        "files": {**(files := fingerprints(evidence)), **_by_first_names(files)},
        "waived": waivers_of(results),
        "not_applicable": not_applicable_of(results),
        "thresholds_changed": departures(run.config, published_config()),
        "gates": [{**result.to_dict(), "offenders": len(result.offenders)} for result in results],
    }
    for result in results:
        write_offenders(run, f"reports/preflight/round{number}_{result.name}_offenders.jsonl", result)
    written = PASSED[number] if passed else FAILED[number]
    # A failed first round also removes the second one's report, which is about other files.
    outdated = {PASSED[number], FAILED[number]} | ({PASSED[2], FAILED[2]} if number == 1 and not passed else set())
    for stale in outdated - {written}:
        # Before writing, so that a kill never leaves the report of an outdated pass.
        place.path(stale).unlink(missing_ok=True)
        place.checksum_path(stale).unlink(missing_ok=True)
    write_json(place.path(written), report)
    write_checksum(place, written)
    write_git_state(run)
    return report


def write_offenders(run: Run, file: str, result: GateResult) -> str | None:
    """Write a gate's rows at fault; if there are none, remove an earlier file.

    Each row of the pool is written with the `source_id` of its question, because row ids are RC1's own and the fix is
    often in the source.

    Args:
        file: the path below the workspace.

    Returns:
        `file`, or None if there is nothing to write.
    """
    path = run.workspace.path(file)
    if not result.offenders:
        path.unlink(missing_ok=True)
        return None
    with atomic_write(path) as stream:
        stream.writelines(orjson.dumps(record) + b"\n" for record in _with_sources(run, result))
    return file


def _with_sources(run: Run, result: GateResult) -> Iterator[dict[str, Any]]:
    ids = [record["id"] for record in result.offenders if isinstance(record.get("id"), str)]
    try:
        rows = read_rows(POOL.path(run)).filter(pl.col("id").is_in(ids)).select("id", "source_id")
    except RowError:  # the gates that read the pool already report this
        rows = pl.DataFrame({"id": [], "source_id": []})
    sources: Mapping[str, str] = dict(rows.iter_rows())
    for record in result.offenders:
        of_a_row = {"source_id": sources[record["id"]]} if record.get("id") in sources else {}
        yield {**record, **of_a_row}


def read_round(run: Run, number: int) -> dict[str, Any] | None:
    """Return a round's report; None if there is none or it cannot be read."""
    try:
        report = read_json(run.workspace.path(PASSED[number]))
    except (OSError, ValueError):
        return None
    return report if isinstance(report, dict) else None


def fingerprints(evidence: Evidence) -> dict[str, dict[str, str | None]]:
    """Return name -> path and SHA-256 of every file of the preflight; the hash is None if the file is missing."""
    return {
        name: {
            "path": evidence.label(name),
            "sha256": evidence.sha256(name) if evidence.path(name).exists() else None,
        }
        for name in evidence.names
    }


def _by_first_names(files: Mapping[str, Mapping[str, str | None]]) -> dict[str, str | None]:
    """Return the paths and hashes under the keys of the original `round1.json`."""
    named = [(key, files[name]) for key, name in _FIRST_NAMES.items() if name in files]
    return {f"{key}{end}": one[part] for key, one in named for end, part in (("", "path"), ("_sha", "sha256"))}


def write_git_state(run: Run) -> None:
    """Write `git_commit.txt` and `git_status.txt`, which identify the code that ran."""
    state = read_code()
    if isinstance(state, GitState):
        named = state.commit or "not a git checkout"
    else:
        named = f"not a git checkout; installed rc1 {state.version or '?'}, SHA-256 {state.sha256}"
    write_text(run.workspace.path("reports/rc1/git_commit.txt"), f"{named}\n")
    write_text(run.workspace.path("reports/rc1/git_status.txt"), "".join(f"{line}\n" for line in state.changed or ()))
