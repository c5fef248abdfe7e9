"""The result of a calibration step: its gate's verdict, its report, its pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from rc1_lib.config.file import departures
from rc1_lib.records import GateResult, Status
from rc1_lib.run import Run, published_config
from rc1_lib.workspace.artifacts import now, recorded_write, write_checksum, write_json

PLOTS = "reports/plots"


@dataclass(frozen=True, slots=True)
class GateReport:
    """One step's outcome.

    Attributes:
        report: the report's path, relative to the workspace.
        plots: title -> PNG file, relative to the workspace.
        fault: the error in program or machine that prevented a flow from evaluating it; else empty.
    """

    gate: GateResult
    report: str
    body: Mapping[str, Any]
    plots: Mapping[str, str] = field(default_factory=dict)
    fault: str = ""

    @property
    def passed(self) -> bool:
        """Whether the gate passed."""
        return self.gate.status is Status.PASSED


def write_report(
    run: Run,
    report: str,
    gate: GateResult,
    body: Mapping[str, Any],
    plots: Mapping[str, str],
    recorded_as: str = "",
    inputs: Mapping[str, str] | None = None,
) -> GateReport:
    """Write a step's report: the verdict first, then the findings.

    It contains the time, so two reports of the same step have different fingerprints. With `recorded_as` (its kind) a
    manifest later shows whether it was altered, and with `inputs` whether it is out of date.
    """
    offenders = len(gate.offenders)
    full = {
        "pass": gate.status is Status.PASSED,
        "time": now(),
        "profile": run.config.profile,
        "config_sha256": run.config_sha256,
        "thresholds_changed": departures(run.config, published_config()),
        **body,
        "plots": dict(plots),
        "gate": {**gate.to_dict(), "offenders": offenders},
    }
    if recorded_as:
        with recorded_write(run.workspace, report, {"kind": recorded_as, "inputs": inputs}) as stream:
            stream.write(orjson.dumps(full, option=orjson.OPT_INDENT_2) + b"\n")
    else:
        write_json(run.workspace.path(report), full)
        write_checksum(run.workspace, report)
    return GateReport(gate, report, full, dict(plots))
