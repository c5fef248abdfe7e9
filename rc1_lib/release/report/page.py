"""Write the report of a run: one HTML page, and its pictures as slides."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rc1_lib.release.report.data import data
from rc1_lib.release.report.gates import gates, standing
from rc1_lib.release.report.html import Head, render
from rc1_lib.release.report.policy import policy, tiles, training
from rc1_lib.release.report.reward import attacks, judge, reward
from rc1_lib.release.report.sources import Sources
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.manifest import step_of
from rc1_lib.workspace.artifacts import atomic_write, write_text
from rc1_lib.workspace.file_hashes import sha256_file

FOLDER = "reports/release"
PAGE = f"{FOLDER}/report.html"
SLIDES = f"{FOLDER}/slides"


@dataclass(frozen=True, slots=True)
class Page:
    """A report that was written.

    Attributes:
        path: the page's path, relative to the workspace.
        sha256: its SHA-256.
        slides: the pictures' paths, relative to the workspace.
        failed: why the run failed; empty if it passed.
    """

    path: str
    sha256: str
    slides: tuple[str, ...]
    failed: tuple[str, ...]


def write_page(run: Run) -> Page:
    """Write `reports/release/report.html` and the slides' pictures, for a run that passed or failed.

    Raises:
        RC1Error: when an existing file cannot be read.
    """
    sources = Sources(run)
    stands = standing(sources)
    parts = [make(sources) for make in (policy, training, reward, attacks, judge, data, gates)]
    slides = []
    for chart in (chart for part in parts for chart in part.charts):
        slides.append(f"{SLIDES}/{chart.name}.png")
        with atomic_write(run.workspace.path(slides[-1])) as stream:
            stream.write(chart.png)
    evaluation = sources.evaluation()
    title = f"RC1 report {evaluation.at('key') if evaluation else 'without an evaluation'}"
    head = Head(title, "RC1 report", bool(stands.reasons), _facts(sources))
    text = render("page.html.j2", PAGE, head, parts, sources, standing=stands, tiles=tiles(sources))
    write_text(run.workspace.path(PAGE), text)
    return Page(PAGE, sha256_file(run.workspace.path(PAGE)), tuple(slides), tuple(stands.reasons))


def _facts(sources: Sources) -> list[tuple[str, object]]:
    """Return facts that identify the run; the ticket's are quoted, without checking that it is valid."""
    config, ticket = sources.run.config, sources.ticket()
    facts: list[tuple[str, object]] = [("profile", config.profile), ("base", config.base_model)]
    facts.append(("steps", _steps(sources)))
    if ticket is not None:
        package = ticket.at("package") or {}
        code = ("package", f"rc1 {package['version']}, {package['sha256'][:12]}") if package else None
        facts += [code or ("commit", str(ticket.at("commit") or "unknown")[:12])]
        facts += [("ticket issued", ticket.at("issued")), ("expires", ticket.at("expires"))]
    return facts


def _steps(sources: Sources) -> str:
    """Return the number of configured steps, or where each seed ended if one ended earlier."""
    steps, report = sources.run.config.steps, sources.training()
    ends = {one["seed"]: step_of(Path(one["checkpoint"])) for one in (report.at("runs") or [])} if report else {}
    if all(end in (None, steps) for end in ends.values()):
        return f"{steps:,}"
    return ", ".join(f"{end:,} of {steps:,} (seed {seed})" for seed, end in ends.items())
