"""Write the report of a run: one HTML page of what its reports say and of the pictures that they name."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from rc1_lib.calibration.keyed_report import REPORT
from rc1_lib.check_words import check_rows, gate_sentence, round_sentence
from rc1_lib.difficulty.steps import REPORT as DIFFICULTY
from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.derived import EVALUATION, TRAINING_REPORT
from rc1_lib.evaluation.tables import Rows, figures_rows, groups_rows, needed_rows, proxy_rows
from rc1_lib.gate_report import PLOTS
from rc1_lib.masking import mask, mask_tree, secrets
from rc1_lib.plots.training import curves, read_metrics
from rc1_lib.preflight.carried_ticket import why_outdated
from rc1_lib.preflight.round_files import FAILED, PASSED
from rc1_lib.preflight.ticket import TICKET, digest_of
from rc1_lib.records import BUCKETS, PASSING, GateResult, Status
from rc1_lib.release.contents import completeness
from rc1_lib.run import Run
from rc1_lib.task_specs import task_spec
from rc1_lib.training.run_paths import paths_of
from rc1_lib.workspace.artifacts import in_form, write_text
from rc1_lib.workspace.file_hashes import sha256_file
from rc1_lib.workspace.input_files import read_regular

PAGE = "reports/release/report.html"
_NIGHTLY = "reports/preflight/nightly.json"
_SHADOW = "reports/shadow_run_pre_run_check.json"
_NAMED = re.compile(r"reports/(calibration_report|reward_hacking|overclar_ablation)_\w+\.json", re.ASCII)
_PICTURE = re.compile(rf"{PLOTS}/[\w.-]+\.png", re.ASCII)
"""The names of the reports and pictures that RC1 writes; no report brings another file into the page."""
_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, slots=True)
class Page:
    """A report that was written.

    Attributes:
        path: the page's path, relative to the workspace.
        sha256: its SHA-256.
        failed: why the run failed; empty if it passed.
    """

    path: str
    sha256: str
    failed: tuple[str, ...]


@dataclass(slots=True)
class _Section:
    """A part of the page; without `files` there is only `lead`, which says what is missing."""

    title: str
    lead: str
    files: list[str] = field(default_factory=list)
    pictures: list[tuple[str, str]] = field(default_factory=list)
    tables: list[Rows] = field(default_factory=list)
    bars: Mapping[str, tuple[list[int], list[int]]] = field(default_factory=dict)
    dialogues: str = ""


def write_page(run: Run) -> Page:
    """Write `reports/release/report.html`, for a run that passed or failed.

    Raises:
        RC1Error: when a report cannot be read or has another form.
    """
    training, ticket, rounds = read_report(run, TRAINING_REPORT), read_report(run, TICKET), rounds_of(run)
    evaluation = read_report(run, EVALUATION.where(run)) if training and training.get("evaluation") else None
    failed = tuple(_failures(run, training, evaluation, ticket, rounds))
    page = run.workspace.path(PAGE)
    text = _render(
        failed=failed,
        facts=_facts(run, ticket),
        waivers=_waivers(rounds),
        judged=bool(rounds),
        changed=_changed(run, rounds, evaluation),
        headlines=_headlines(run, evaluation),
        sections=[_policy(run, evaluation), _training(run, training), _reward(run, rounds), _data(run), _gates(rounds)],
    )
    write_text(page, text)
    return Page(PAGE, sha256_file(page), failed)


def check_passed(run: Run, page: Page) -> None:
    """Require a page that a release may carry.

    Raises:
        RC1Error: when the page says that the run failed, and why.
    """
    if page.failed:
        raise RC1Error(f"no release: {run.workspace.path(page.path)} says FAILED: {'; '.join(page.failed)}")


def _render(**context: object) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    here = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=here, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.get_template("report.html.j2").render(context)


def read_report(run: Run, name: str) -> dict[str, Any] | None:
    """Read a JSON file of the workspace without the values of secrets; None if it does not exist."""
    path = run.workspace.path(name)
    if not path.is_file():
        return None
    try:
        body = orjson.loads(read_regular(path))
    except (OSError, ValueError) as error:
        raise RC1Error(f"{path}: cannot be read for the report ({error}); write it again or move it away") from None
    with in_form(path):
        if not isinstance(body, dict):
            raise TypeError(f"found {type(body).__name__}, expected an object")
        return dict(mask_tree(body, secrets()))


@dataclass(frozen=True, slots=True)
class Round:
    """A report of gates, with the verdicts that it states."""

    name: str
    file: str
    body: Mapping[str, Any]
    gates: Sequence[GateResult]


def rounds_of(run: Run) -> list[Round]:
    """Return both rounds (a failed report comes before a passed one), and those of the nightly.

    A round that a later preflight judged again is left out of the nightly's.
    """
    found = []
    for number in (1, 2):
        name = FAILED[number] if run.workspace.path(FAILED[number]).is_file() else PASSED[number]
        if (body := read_report(run, name)) is not None:
            with in_form(run.workspace.path(name)):
                found.append(Round(f"round {number}", name, body, _gates_in(body["gates"])))
    if (body := read_report(run, _NIGHTLY)) is not None:
        with in_form(run.workspace.path(_NIGHTLY)):
            times = {one.name.replace(" ", ""): str(one.body.get("time")) for one in found}
            again = {name for name, time in times.items() if time > str(body["time"])}
            for name, gates in body["rounds"].items():
                part = _gates_in(gates)
                # The night's own gates wait for a round; they say nothing once it is judged again.
                if name not in again and not (again and all(gate.status is Status.WAITING for gate in part)):
                    found.append(Round(f"nightly, {name}", _NIGHTLY, body, part))
    return found


def _gates_in(gates: Sequence[Mapping[str, Any]]) -> list[GateResult]:
    return [GateResult.from_report(gate) for gate in gates]


_Body = Mapping[str, Any] | None


def _failures(run: Run, training: _Body, evaluation: _Body, ticket: _Body, rounds: Sequence[Round]) -> Iterator[str]:
    """Yield why the run failed: something failed or is missing, or the policy had another ticket."""
    for one in rounds:
        if any(gate.status not in PASSING for gate in one.gates):
            yield f"{one.name} has not passed: {round_sentence(one.gates)}"
        elif one.body.get("pass") is not True:
            yield f"{one.name} has not passed: it was not judged whole"
    for name in ("round 1", "round 2"):
        if name not in {one.name for one in rounds}:
            yield f"{name} was not judged"
    if ticket is None:
        yield "there is no ticket"
    elif ticket.get("revoked"):
        with in_form(run.workspace.path(TICKET)):
            yield f"the ticket was revoked: {ticket['revoked']['reason']}"
    elif ticket.get("ticket_sha256") != digest_of(dict(ticket)):
        yield "the ticket was changed after it was issued"
    if training is not None and ticket is not None:
        with in_form(run.workspace.path(TICKET)):
            outdated = why_outdated(training, ticket)
        if outdated:
            yield outdated
    if evaluation is None:
        yield "the policy was not evaluated"
        return
    with in_form(EVALUATION.path(run)):
        gate = GateResult.from_report(evaluation["gate"])
    if evaluation.get("pass") is not True or gate.status is not Status.PASSED:
        yield f"the gate {gate.name} failed: {', '.join(check.name for check in gate.failures) or gate.error}"
    elif training is not None and training.get("pass") is not True:
        yield f"the training failed after its evaluation: {training.get('message')}"


def _facts(run: Run, ticket: _Body) -> list[tuple[str, str]]:
    """Return facts that identify the run; the ticket's are quoted, without checking that it is valid."""
    facts = [("profile", run.config.profile), ("base", run.config.base_model), ("steps", f"{run.config.steps:,}")]
    if ticket is not None:
        with in_form(run.workspace.path(TICKET)):
            package = ticket.get("package")
            facts.append(("package", package["version"]) if package else ("commit", str(ticket.get("commit"))[:12]))
            facts += [("ticket issued", str(ticket["issued"])), ("expires", str(ticket["expires"]))]
    return facts


def _waivers(rounds: Sequence[Round]) -> dict[str, str]:
    """Return gate -> why it gave no verdict."""
    gates = (gate for one in rounds for gate in one.gates)
    return {gate.name: gate_sentence(gate) for gate in gates if gate.status not in (Status.PASSED, Status.FAILED)}


def _changed(run: Run, rounds: Sequence[Round], evaluation: _Body) -> Rows:
    """Return the settings that differ from the published ones."""
    file, found = EVALUATION.where(run) if evaluation else "", evaluation
    if found is None and rounds:
        file, found = rounds[0].file, rounds[0].body
    with in_form(run.workspace.path(file)):
        changed = (found or {}).get("thresholds_changed") or []
        rows = [(str(one["key"]), str(one["value"]), str(one["published"])) for one in changed]
    return Rows(f"{len(rows)} settings other than published", ("key", "here", "published"), rows)


def _headlines(run: Run, evaluation: _Body) -> list[tuple[str, ...]]:
    """Return the figures that decide: words, before, after, change, interval, wanted, passed."""
    if evaluation is None:
        return []
    with in_form(EVALUATION.path(run)):
        return [row for row in figures_rows(evaluation, "sampled").rows if row[-1]]


def _policy(run: Run, evaluation: _Body) -> _Section:
    title = "The policy, before and after"
    if evaluation is None:
        return _Section(title, "The policy was not evaluated: no evaluation is named by a training.")
    file = EVALUATION.where(run)
    with in_form(run.workspace.path(file)):
        sides = f"{evaluation['before']} against {evaluation['after']}, the same prompts, paired."
        lead = f"{sides} An answer that is right without asking for what was missing is no success."
        tables = [figures_rows(evaluation, "sampled"), groups_rows(evaluation, "sampled")]
        tables += [needed_rows(evaluation, "sampled"), figures_rows(evaluation, "greedy")]
        tables += [proxy_rows(evaluation)] if evaluation.get("proxy") else []
        tables.append(_checks("The gate ppo_eval", [GateResult.from_report(evaluation["gate"])]))
        pictures = _pictures(run, evaluation, without=("training",))
    dialogues = run.workspace.path(f"{file.removesuffix('.json')}.examples.md")
    text = read_regular(dialogues).decode("utf-8", "replace") if dialogues.is_file() else ""
    return _Section(title, lead, [file], pictures, tables, dialogues=mask(text, secrets()))


def _pictures(run: Run, report: Mapping[str, Any], without: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return title and content, as a `data:` address, of the pictures that a report names and that are there."""
    names = {title: name for title, name in (report.get("plots") or {}).items() if title not in without}
    return [(title, found) for title, name in names.items() if (found := _picture(run, name))]


def _picture(run: Run, name: str) -> str:
    path = run.workspace.path(name)
    content = read_regular(path) if _PICTURE.fullmatch(name) and path.is_file() else b""
    return f"data:image/png;base64,{base64.b64encode(content).decode()}" if content.startswith(_PNG) else ""


def _checks(title: str, gates: Sequence[GateResult]) -> Rows:
    cells = [
        (": ".join(filter(None, (row["gate"], row["check"]))), row["value"], row["wanted"], row["outcome"])
        for row in check_rows(gates)
    ]
    return Rows(title, ("check", "value", "wanted", "verdict"), cells)


def _training(run: Run, training: _Body) -> _Section:
    """Return the curves of every seed, where it ended, and whether it could learn when it began."""
    if training is None:
        return _Section("Training", "Nothing was trained in this workspace: there is no report of a training.")
    section = _Section("Training", str(training.get("message") or "It ended."), [TRAINING_REPORT])
    with in_form(run.workspace.path(TRAINING_REPORT)):
        runs = [(int(one["seed"]), str(one["checkpoint"]), str(one["sha256"])) for one in training["runs"]]
        seconds = [(name, f"{value:,.1f}") for name, value in (training.get("seconds") or {}).items()]
    for seed, _, _ in runs:
        metrics, name = run.workspace.path(paths_of(run, seed).metrics), f"{PLOTS}/training_{seed}.png"
        if metrics.is_file():
            curves(run.workspace.path(name), read_metrics(metrics))
            section.pictures.append((f"seed {seed}", _picture(run, name)))
    rows = [(str(seed), *rest) for seed, *rest in runs]
    section.tables.append(Rows("Checkpoints", ("seed", "checkpoint", "SHA-256 of its manifest"), rows))
    section.tables.append(Rows("Where the time went", ("stage", "seconds"), seconds))
    with in_form(run.workspace.path(TRAINING_REPORT)):
        section.tables.append(completeness(run, training))
    from rc1_lib.forecast.learnability import START_REPORT  # here, because it needs torch

    found = read_report(run, START_REPORT)
    # The file may be of an earlier training in this workspace.
    if found is not None and all(found.get(name) == training.get(name) for name in ("config_sha256", "reference")):
        section.files.append(START_REPORT)
        with in_form(run.workspace.path(START_REPORT)):
            section.tables.append(_checks("Could it learn at its start?", _gates_in([found["gate"]])))
    return section


def _reward(run: Run, rounds: Sequence[Round]) -> _Section:
    """Return what the calibration found, what worthless policies earn, and what the judge cost."""
    found = {name: read_report(run, name) for name in _reward_files(run, rounds)}
    reports = {name: body for name, body in found.items() if body is not None}
    section = _Section("The reward and its judge", "Weights are fitted to success, then compared with the old score.")
    if not reports:
        why = run.config.why_not_judged or "nothing was calibrated in this workspace"
        section.lead = f"{why[:1].upper()}{why[1:]}."
        return section
    costs = []
    for name, body in reports.items():
        with in_form(run.workspace.path(name)):
            section.pictures += _pictures(run, body)
            if scoring := body.get("scoring"):
                models = ", ".join(scoring["models"])
                counts = [f"{scoring[key]:,.0f}" for key in ("rows", "calls", "replayed")]
                share, unstable = f"{100 * scoring['coverage']:.1f} %", str(len(scoring["unstable"]))
                usd = "unknown" if scoring["usd"] is None else f"${scoring['usd']:,.2f}"
                costs.append((name, models, *counts, share, unstable, usd))
    section.files += reports
    head = ("report", "model", "dialogues", "calls", "replayed", "scored", "unstable", "cost")
    section.tables.append(Rows("The judge: asked, replayed, paid", head, costs))
    return section


def _reward_files(run: Run, rounds: Sequence[Round]) -> list[str]:
    """Return the calibration that the weights name, the shadow run, and the reports that the rounds read."""
    with in_form(run.workspace.path(run.config.weights)):
        report = (read_report(run, run.config.weights) or {}).get("report") or {}
        named = [str(report.get("path")), _SHADOW]
    checks = (check for one in rounds for gate in one.gates for check in gate.checks)
    named += [str(check.value) for check in checks if check.name == REPORT]
    return [name for name in dict.fromkeys(named) if name == _SHADOW or _NAMED.fullmatch(name)]


def _data(run: Run) -> _Section:
    """Return the rows by task and bucket, and how difficult, long and varied they are."""
    if (report := read_report(run, DIFFICULTY)) is None:
        return _Section("The data", "No pool was measured in this workspace, so nothing is known about its rows.")
    with in_form(run.workspace.path(DIFFICULTY)):
        pool, balanced = (report["counts"][name] for name in ("pool", "balanced"))
        rows = [
            (
                "all" if task == "all" else task_spec(task).label, f"{pool[task]['total']:,}",
                *(f"{kept[name]:,}" for name in ("total", *BUCKETS)),
            )
            for task, kept in balanced.items()
        ]  # fmt: skip
        bars = {
            f"{name.replace('_', ' ')}, {found['edges'][0]:g} to {found['edges'][-1]:g}": _heights(
                found["pool"], found["balanced"]
            )
            for name, found in report["histograms"].items()
            if found["edges"]
        }
    lead = "Outline: the pool. Filled: the balanced pool, which training reads. Each as shares of its rows."
    head = ("task", "pool", "balanced", *BUCKETS)
    return _Section("The data", lead, [DIFFICULTY], tables=[Rows("Rows by task", head, rows)], bars=bars)


def _heights(*pools: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return counts as shares of their pool's rows, in thousandths of the largest share."""
    shares = [[count / max(sum(counts), 1) for count in counts] for counts in pools]
    top = max(map(max, shares)) or 1.0
    pool, balanced = ([round(1000 * share / top) for share in one] for one in shares)
    return pool, balanced


def _gates(rounds: Sequence[Round]) -> _Section:
    """Return a table of every gate in every round, and all checks of each round."""
    if not rounds:
        return _Section("The gates", "No round was judged in this workspace.")
    names = list(dict.fromkeys(gate.name for one in rounds for gate in one.gates))
    status = [{gate.name: _status(gate) for gate in one.gates} for one in rounds]
    rows = [(name, *(found.get(name, "") for found in status)) for name in names]
    tables = [Rows("Every gate", ("gate", *(one.name for one in rounds)), rows)]
    tables += [_checks(f"All checks of {one.name}", one.gates) for one in rounds]
    lead = "; ".join(f"{one.name} of {one.body.get('time')}" for one in rounds)
    return _Section("The gates", f"{lead}.", list(dict.fromkeys(one.file for one in rounds)), tables=tables)


def _status(gate: GateResult) -> str:
    return gate.status.upper() if gate.status in (Status.FAILED, Status.ERROR) else str(gate.status)
