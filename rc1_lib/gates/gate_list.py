"""The gates of a preflight, in order, and how a round evaluates one."""

from __future__ import annotations

from dataclasses import replace

from rc1_lib.calibration.derived import WEIGHTS
from rc1_lib.config.foreign_gates import foreign_gates
from rc1_lib.config.thresholds import Gates
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.evidence import Evidence, described
from rc1_lib.gates import (
    answer_rule,
    anti_simulation,
    consistency,
    difficulty,
    diversity,
    duplicates,
    git,
    integrity,
    judge_agreement,
    judge_drift,
    judge_probe,
    judge_stability,
    leakage,
    length,
    missing_piece,
    mix,
    overclar_ablation,
    overclar_penalty,
    resources,
    reward_hacking,
    shadow_run,
    shadow_set,
    training_config,
    weights,
)
from rc1_lib.gates.spec import NIGHTLY, GateSpec, Round
from rc1_lib.judge.providers import LIVE
from rc1_lib.records import GateResult, Status
from rc1_lib.run import Run
from rc1_lib.vouched import VOUCHED
from rc1_lib.workspace.file_hashes import stamps

_HOUSE = (
    git, resources, training_config, overclar_penalty, weights, overclar_ablation, reward_hacking, integrity,
    shadow_set, mix, length, diversity, duplicates, leakage, consistency, missing_piece, answer_rule, difficulty,
    judge_probe, anti_simulation, judge_stability, judge_agreement, shadow_run, judge_drift,
)  # fmt: skip


def all_gates() -> tuple[GateSpec, ...]:
    """Return the gates of RC1, then those that other packages register.

    Raises:
        ConfigError: when one of the latter is no gate, has the name of one of RC1's, or reads an unknown file.
    """
    house = tuple(module.SPEC for module in _HOUSE)
    taken = {spec.name for spec in house} | Gates.model_fields.keys()
    for name, gate in foreign_gates().items():
        said = f"the package {gate.facts['package']} registers the gate '{name}'"
        if not isinstance(gate.spec, GateSpec):
            raise ConfigError(f"{said}: found a {type(gate.spec).__name__}, expected a rc1_lib.gates.spec.GateSpec")
        if name in taken:
            raise ConfigError(f"{said}, a name of RC1's own; give it another one")
        if unknown := [file for file in gate.spec.reads if file not in VOUCHED]:
            raise ConfigError(f"{said}, which reads {', '.join(unknown)}; expected some of {', '.join(VOUCHED)}")
    return (*house, *(gate.spec for gate in foreign_gates().values()))


PREFLIGHT = all_gates()
BY_NAME = {spec.name: spec for spec in PREFLIGHT}


def not_applicable(run: Run) -> dict[str, str]:
    """Return gate -> why it has nothing to judge with this configuration."""
    why = run.config.why_not_judged
    return {spec.name: why for spec in PREFLIGHT if spec.on_score} if why else {}


def files_of(spec: GateSpec, run: Run) -> tuple[str, ...]:
    """Return the files that a gate reads in this run: those of `reads` that the run has."""
    return tuple(name for name in spec.reads if described(name).applies(run))


def round_name(number: Round) -> str:
    """Return `round1`, `round2` or `nightly`, as reports and the UI call it."""
    return f"round{number}" if number != NIGHTLY else "nightly"


def round_title(number: Round) -> str:
    """Return `round 1`, `round 2` or `nightly`, for people."""
    return f"round {number}" if number != NIGHTLY else "nightly"


def gates_of_round(number: Round) -> tuple[GateSpec, ...]:
    """Return the gates of round 1, of round 2, or of neither (`NIGHTLY`), in order."""
    return tuple(spec for spec in PREFLIGHT if number in spec.rounds)


def waiting(run: Run, number: Round, failed: str) -> dict[str, str]:
    """Return gate -> what it waits for, of the gates that cannot be judged after a failed stage of the calibration."""
    found: dict[str, str] = {}
    for spec in gates_of_round(number):
        if spec.name in run.config.gates.waivers or spec.name in not_applicable(run):
            continue
        if WEIGHTS.name in spec.reads:
            found[spec.name] = f"the calibration, whose stage '{failed}' failed: it wrote no weights to judge"
        elif spec.asks and run.config.judge.provider in LIVE:
            found[spec.name] = f"the calibration, whose stage '{failed}' failed: the judge is not called after it"
        elif asking := [name for name in spec.looks_at if name in found]:
            found[spec.name] = f"{asking[0]}, which is not judged and whose calls this gate reads"
    return found


def evaluate(name: str, evidence: Evidence, number: Round, before: GateResult | None = None) -> GateResult:
    """Evaluate one gate, and record the fingerprints of what it read.

    A gate that reads only files is a function of their bytes, the configuration and the code. Within one run the last
    two do not change, so round 2 reuses what passed in round 1 if the files, hashed again, have the same bytes
    (`rc1_lib.workspace.file_hashes`).

    User errors (a missing or damaged file) become a result with status ERROR; other exceptions are raised.

    Args:
        before: the gate's result in the previous round of this run.
    """
    spec = BY_NAME[name]
    check_waivers(evidence.run)
    if why := not_applicable(evidence.run).get(name):
        return GateResult(name, not_applicable=why)
    waiver = evidence.run.config.gates.waivers.get(name, "")
    if waiver:
        return GateResult(name, waiver=waiver)
    try:
        written = _stamps(spec, evidence)
        prints = {evidence.label(file): evidence.sha256(file) for file in files_of(spec, evidence.run)}
        if before is not None and _still_valid(spec, before, prints):
            return before
        result = spec.gate(evidence, number)
        # If a file was written meanwhile, it is unknown which bytes were read, even if the old ones are back. The
        # verdict then has no evidence, so the round evaluates the gate once more.
        return replace(result, evidence=prints if _stamps(spec, evidence) == written else {})
    except RC1Error as error:
        return GateResult(name, error=str(error))


def _still_valid(spec: GateSpec, before: GateResult, prints: dict[str, str]) -> bool:
    """Return whether the previous round's verdict also holds for this round."""
    return not spec.reads_world and before.status is Status.PASSED and before.evidence == prints


def _stamps(spec: GateSpec, evidence: Evidence) -> list[object]:
    """Return a value that changes whenever a file that the gate reads is written, even with the same content."""
    return [stamps(evidence.path(file)) for file in files_of(spec, evidence.run)]


def check_waivers(run: Run) -> None:
    """Reject waivers of unknown gates, which would have no effect but seem to have one."""
    unknown = set(run.config.gates.waivers) - set(BY_NAME)
    if unknown:
        raise ConfigError(f"gates.waivers: found {', '.join(sorted(unknown))}, expected some of {', '.join(BY_NAME)}")
