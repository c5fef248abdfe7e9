"""The gates of a preflight, in order: what each one reads, in which rounds, and the function that evaluates it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rc1_lib.calibration.judge_baseline import JUDGE_BASELINE, drift_verdict
from rc1_lib.calibration.judged_rows import dimensions, real_checks, reported_models
from rc1_lib.calibration.overclar_ablation import ablation_verdict
from rc1_lib.calibration.reward_hacking import hacking_verdict
from rc1_lib.calibration.shadow_run import PRE_RUN, shadow_run
from rc1_lib.calibration.weights_file import WEIGHTS, named_report, read_content
from rc1_lib.checks import equal
from rc1_lib.difficulty.features import measure
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.evidence import DATA, Evidence, described
from rc1_lib.gates.answer_rule import answer_rule_gate
from rc1_lib.gates.consistency import consistency_gate
from rc1_lib.gates.difficulty import difficulty_gate
from rc1_lib.gates.diversity import diversity_gate
from rc1_lib.gates.duplicates import duplicates_gate
from rc1_lib.gates.integrity import integrity_gate
from rc1_lib.gates.leakage import leakage_gate
from rc1_lib.gates.length import length_gate
from rc1_lib.gates.machine import free_gb, git_gate, read_code, resources_gate
from rc1_lib.gates.missing_piece import missing_piece_gate
from rc1_lib.gates.mix import mix_gate
from rc1_lib.gates.shadow import shadow_gate
from rc1_lib.gates.training import penalty_gate, training_gate
from rc1_lib.gates.weights import Origin, weights_gate
from rc1_lib.judge.prompt import judge_identity
from rc1_lib.judge.providers import LIVE
from rc1_lib.pool.as_asked import known_questions
from rc1_lib.pool.templates import load_pack
from rc1_lib.preflight import judge_gates
from rc1_lib.records import GateResult, Status
from rc1_lib.run import Run
from rc1_lib.sources.solvers import solver_of
from rc1_lib.task_specs import task_spec
from rc1_lib.workspace.artifacts import PROJECT_ROOT, sha256_tree
from rc1_lib.workspace.file_hashes import stamps

Round = int
NIGHTLY: Round = 0
"""Gates that run only in the nightly, after both rounds."""


@dataclass(frozen=True, slots=True)
class GateSpec:
    """One gate of the preflight.

    Attributes:
        name: its name in reports, tickets and waivers.
        title: the question that it answers, for people.
        reads: names of `Evidence.names`; their content and the gate's thresholds decide the verdict.
        gate: from the evidence and the round to the verdict; the round matters only if it reads the world.
        rounds: in which rounds it is evaluated.
        reads_world: whether it also reads what is in no file (disk, git, a provider, the clock). Round 2 then evaluates
            it again; otherwise it reuses a pass of round 1 on the same bytes.
        asks: whether it calls the judge, which costs money if the judge is live.
        looks_at: the gates whose calls of the judge it reads.
        on_score: whether it is about the judged score; if training does not reward that, the gate is not applicable.
    """

    name: str
    title: str
    reads: tuple[str, ...]
    gate: Callable[[Evidence, Round], GateResult]
    rounds: tuple[Round, ...] = (1, 2)
    reads_world: bool = False
    asks: bool = False
    looks_at: tuple[str, ...] = ()
    on_score: bool = False


def _tasks(evidence: Evidence) -> list[str]:
    return list(evidence.run.config.datasets)


def _integrity(evidence: Evidence, _: Round) -> GateResult:
    states = {evidence.label(artifact.name): artifact.state(evidence.run) for artifact in DATA}
    return integrity_gate(states, evidence.balanced_foreign_lines())


def _shadow(evidence: Evidence, _: Round) -> GateResult:
    config = evidence.run.config
    rows, strata = evidence.rows("shadow"), config.datasets if config.shadow.stratify else {}
    buckets = measure(rows, config.difficulty)["bucket"], evidence.metrics()["bucket"]
    return shadow_gate(rows, config.shadow.n, strata, buckets, config.gates.shadow_set.max_bucket_diff)


def _diversity(evidence: Evidence, _: Round) -> GateResult:
    config = evidence.run.config
    own, old = (load_pack(evidence.path(name)) for name in ("templates", "reference_templates"))
    result = diversity_gate(evidence.rows("pool"), own, old, config.gates.diversity, _tasks(evidence), config.pool.seed)
    # Otherwise a folder of this name in the workspace could replace the pack that divergence is measured from.
    published = PROJECT_ROOT / config.pool.reference_templates_dir
    ours = not published.is_dir() or sha256_tree(published) == evidence.sha256("reference_templates")
    advice = f"{evidence.path('reference_templates')} is a different pack with the same name; move or rename it"
    return replace(result, checks=(*result.checks, equal("old pack is the project's own", ours, True, advice)))


def _leakage(evidence: Evidence, _: Round) -> GateResult:
    packs = [load_pack(evidence.path(name)) for name in ("templates", "reference_templates")]
    literals = [text for pack in packs for lang in ("en", "zh") for text in pack.literals(lang)]
    rows, shadow, limits = evidence.rows("pool"), evidence.rows("shadow"), evidence.run.config.gates.leakage
    return leakage_gate(rows, shadow, limits, literals, _tasks(evidence))


def consistency(evidence: Evidence, names: Sequence[str]) -> GateResult:
    """Check that the rows of the files `names` contradict neither themselves nor their source.

    Raises:
        RC1Error: when a file, the source or the templates cannot be read.
    """
    # The source is not a file of the round; if it changed after the rows were made, `integrity` reports them as stale.
    run = evidence.run
    files = {name: evidence.rows(name) for name in names}
    questions, pack = known_questions(run.config, run.workspace), load_pack(evidence.path("templates"))
    return consistency_gate(files, questions, pack, run.config.gates.consistency)


def missing_piece(evidence: Evidence, names: Sequence[str]) -> GateResult:
    """Check that in the rows of the files `names` the missing piece is missing, and nothing else.

    Raises:
        RC1Error: when a file cannot be read.
    """
    files, gates = {name: evidence.rows(name) for name in names}, evidence.run.config.gates
    return missing_piece_gate(files, solver_of, gates.missing_piece, gates.shared.confidence)


def _answer_rule(evidence: Evidence, _: Round) -> GateResult:
    gates = evidence.run.config.gates
    rows, rule_of = evidence.rows("pool"), lambda task: task_spec(task).is_right
    return answer_rule_gate(rows, rule_of, gates.answer_rule, gates.shared.confidence)


def _difficulty(evidence: Evidence, _: Round) -> GateResult:
    config = evidence.run.config
    return difficulty_gate(
        evidence.metrics(),
        evidence.rows("balanced"),
        config.gates.difficulty,
        _tasks(evidence),
        config.gates.mix,
        config.datasets,
    )


def _weights(evidence: Evidence, _: Round) -> GateResult:
    run = evidence.run
    content = read_content(run)
    report, sha256 = named_report(run, content)
    origin = Origin(report, sha256, judge_identity(run), run.config.reward.old_weights, WEIGHTS.state(run).value)
    result = weights_gate(content, run.config.gates.weights, dimensions(run), origin)
    marks = real_checks(run, reported_models(report)) if report else ()
    return replace(result, checks=(*result.checks, *marks))


def _shadow_run(evidence: Evidence, _: Round) -> GateResult:
    return shadow_run(evidence.run, PRE_RUN).gate


PREFLIGHT: tuple[GateSpec, ...] = (
    GateSpec(
        "git", "which code is this", (), lambda e, _: git_gate(read_code(), e.run.config.gates.git),
        reads_world=True,
    ),
    GateSpec(
        "resources", "is there room on the disk", (),
        lambda e, _: resources_gate(free_gb(e.run.workspace.root), e.run.config.gates.resources), reads_world=True,
    ),
    GateSpec("training_config", "may this configuration train", ("config",), lambda e, _: training_gate(e.run.config)),
    GateSpec("overclar_penalty", "does needless asking cost", ("config",), lambda e, _: penalty_gate(e.run.config)),
    GateSpec(
        "weights", "are the reward weights sound", ("weights", "judge_spec"), _weights, reads_world=True, on_score=True,
    ),
    GateSpec(
        "overclar_ablation", "does the penalty do what it should", ("weights", "takes", "judge_spec"),
        lambda e, _: ablation_verdict(e.run), reads_world=True,
    ),
    GateSpec(
        "reward_hacking", "does the reward pay adversarial policies less", ("weights", "shadow", "takes", "judge_spec"),
        lambda e, _: hacking_verdict(e.run), reads_world=True,
    ),
    GateSpec(
        "integrity", "are the files those that were written", tuple(artifact.name for artifact in DATA),
        _integrity, reads_world=True,
    ),
    GateSpec("shadow_set", "is the shadow set whole, and like the pool", ("shadow", "metrics"), _shadow),
    GateSpec(
        "mix", "are the tasks in proportion", ("pool",),
        lambda e, _: mix_gate(e.rows("pool"), e.run.config.gates.mix, e.run.config.datasets),
    ),
    GateSpec(
        "length", "is every row of a usable length", ("pool",),
        lambda e, _: length_gate(e.rows("pool"), e.run.config.gates.length, _tasks(e)),
    ),
    GateSpec("diversity", "is the wording varied and new", ("pool", "templates", "reference_templates"), _diversity),
    GateSpec(
        "duplicates", "are the rows different", ("pool",),
        lambda e, _: duplicates_gate(e.rows("pool"), e.run.config.gates.duplicates, _tasks(e)),
    ),
    GateSpec(
        "leakage", "is the shadow set unseen", ("pool", "shadow", "templates", "reference_templates"), _leakage,
    ),
    GateSpec(
        "consistency", "is what the rows say true", ("pool", "shadow", "takes", "templates"),
        lambda e, _: consistency(e, ("pool", "shadow", "takes")),
    ),
    GateSpec(
        "missing_piece", "is what is missing really missing, and nothing else", ("pool", "shadow", "takes"),
        lambda e, _: missing_piece(e, ("pool", "shadow", "takes")),
    ),
    GateSpec("answer_rule", "are right answers paid, and no others", ("pool",), _answer_rule),
    GateSpec(
        "difficulty", "is the difficulty balanced", ("metrics", "balanced"),
        _difficulty,
    ),
    GateSpec(
        "judge_probe", "does the judge answer", ("shadow", "judge_spec"), lambda e, _: judge_gates.probe(e),
        reads_world=True, asks=True, on_score=True,
    ),
    GateSpec(
        "anti_simulation", "are the scores real", ("judge_spec",), judge_gates.anti_simulation, reads_world=True,
        looks_at=("judge_probe",), on_score=True,
    ),
    GateSpec(
        "judge_stability", "does the judge agree with itself", ("judge_spec",), lambda e, _: judge_gates.stability(e),
        reads_world=True, on_score=True,
    ),
    GateSpec(
        "judge_agreement", "does the judge agree with people", ("labels", "judge_spec"),
        lambda e, _: judge_gates.agreement(e), reads_world=True, asks=True, on_score=True,
    ),
    GateSpec(
        "shadow_run", "does the new reward order dialogues better", ("shadow", "weights", "judge_spec"),
        _shadow_run, rounds=(2,), reads_world=True, asks=True, on_score=True,
    ),
    GateSpec(
        "judge_drift", "does the judge grade as it did", (JUDGE_BASELINE.name, "judge_spec"),
        lambda e, _: drift_verdict(e.run), rounds=(NIGHTLY,), reads_world=True, asks=True,
        on_score=True,
    ),
)  # fmt: skip
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
    """Return gate -> what it waits for, of the gates that cannot be judged after a failed stage of the calibration.

    Args:
        run: the run.
        number: the round.
        failed: the stage.
    """
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
        name: the gate.
        evidence: the files.
        number: the round.
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
