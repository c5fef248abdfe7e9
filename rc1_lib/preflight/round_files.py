"""Where the reports of the rounds lie, by number, relative to the workspace."""

from __future__ import annotations

PASSED = {1: "reports/preflight/round1.json", 2: "reports/preflight/round2_pass.json"}
FAILED = {1: "reports/preflight/round1.json", 2: "reports/preflight/round2_fail.json"}
