"""Make every picture of README and docs from a finished run: `make pictures`, or `make pictures RUN=WORKSPACE`.

What the run has left is drawn again by today's code. The failed gates are those of a preflight on a small pool that is
damaged here, as the tutorial does it. Below each picture is the commit of the run that it shows.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import polars as pl
from browser import Browser, browser, missing
from matplotlib import font_manager
from PIL import Image, ImageDraw, ImageFont
from record import FOLDER, PICTURES, RECORD, ROOT, entry

from deployments.server import Server, free_port, start_server
from rc1_lib.errors import RC1Error
from rc1_lib.plots import reward as plots
from rc1_lib.plots.evaluation import asking
from rc1_lib.plots.training import curves, read_metrics
from rc1_lib.release.report import write_page
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import read_json

NOT_MADE, REFUSED = 77, 2
WIDTH = 1000
"""Pixels: as wide as GitHub shows a page's text."""
_FOOT, _TYPE = 30, 13
ROWS, COPIED, _GATE = 1200, 60, "duplicates"
_CURVES = {
    "objective/scores": "reward of an episode", "env/success": "success",
    "env/success_needed": "success, asking needed",
    "env/asked_needed": "asks where needed", "env/asked_clear": "asks where not needed",
    "objective/kl_per_token": "KL per token, nats",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture without the line below it.

    Attributes:
        content: a PNG.
        commit: of the run that it shows.
        said: what else is said below it.
        shown: what is named in it, by kind.
    """

    content: bytes
    commit: str
    said: str
    shown: Mapping[str, Sequence[str]] = field(default_factory=dict)


def main(arguments: Sequence[str]) -> int:
    """Make them; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, nargs="?", default=ROOT, help="workspace of a finished run")
    workspace = parser.parse_args(arguments).run.resolve()
    if lacking := missing():
        print(
            f"NOT MADE: the pictures of README and docs: {lacking} is not installed. To make them: install it and its "
            f"driver (Debian: apt-get install chromium chromium-driver), then make pictures",
            file=sys.stderr,
        )
        return NOT_MADE
    if not (workspace / "reports/train.json").is_file():
        print(
            f"{workspace}: reports/train.json is missing, expected the workspace of a finished run; "
            f"do `make run` first, or name another one: make pictures RUN=WORKSPACE",
            file=sys.stderr,
        )
        return REFUSED
    for name in ("BASE_MODEL", "RUN_MODE", "SCORER_BASE_URL", "SCORER_PROVIDER"):  # would change what a run is
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as folder, browser() as window:
        try:
            made = of_run(workspace, Path(folder) / "run", window) | of_failed_gates(Path(folder) / "try", window)
        except RC1Error as error:
            print(error, file=sys.stderr)
            return REFUSED
    _write({name: made[name] for name in PICTURES})
    return 0


def of_run(workspace: Path, copy: Path, window: Browser) -> dict[str, Picture]:
    """The pictures of a finished run, from a copy of its files, so that nothing is written into it."""
    for part in ("configs", "data", "reports"):
        shutil.copytree(workspace / part, copy / part)
    commit, training = _commit(copy), read_json(copy / "reports/train.json")
    run = open_run(profile=training["profile"], workspace=copy)
    evaluation = read_json(copy / training["evaluation"])
    seeds = len(evaluation["prompts"])
    prompts = evaluation["modes"]["sampled"]["overall"]["prompts"] // seeds
    asks, steps = copy / "asking.png", copy / "training.png"
    asking(asks, evaluation)
    curves(steps, read_metrics(copy / "reports/metrics.jsonl"), panels=_CURVES)
    return {
        "report.png": Picture(_report(run, window), commit, "top of the page that rc1 report writes"),
        "asking.png": Picture(
            asks.read_bytes(), commit, f"evaluation of {seeds} seed(s) on {prompts:,} held-out prompts"
        ),
        "training.png": Picture(steps.read_bytes(), commit, f"{training['message'].partition(';')[0]}"),
        "calibration.png": _calibration(copy, commit),
    }


def _report(run: Run, window: Browser) -> bytes:
    """The page's top, down to the headlines."""
    page = run.workspace.path(write_page(run).path)
    window.open(page.as_uri(), width=WIDTH, height=WIDTH)
    bottom = window.run("return document.querySelector('.tiles').getBoundingClientRect().bottom")
    return window.picture(bottom=bottom + 20, width=WIDTH)


def _calibration(copy: Path, commit: str) -> Picture:
    """Weights above, reliability below."""
    stages = {
        one["gate"]["name"]: one["report"] for one in read_json(copy / "reports/calibration_stages.json")["stages"]
    }
    report, shadow = (read_json(copy / stages[name]) for name in ("calibration", "shadow_run"))
    found = report["calibration"]
    drawn = {
        name: (
            report["old_weights"].get(name, 0.0),
            1.0 / len(found["names"]),
            found["weights"][name],
            found["intervals"][f"weight.{name}"]["low"],
            found["intervals"][f"weight.{name}"]["high"],
        )
        for name in found["names"]
    }
    rows = pl.read_ndjson(copy / shadow["terms"]).filter(pl.col("reward").is_not_null())
    above, below = copy / "weights.png", copy / "reliability.png"
    shown = f"n = {found['rows']:,} dialogues about {found['groups']:,} source questions"
    plots.weights(above, drawn, cap=report["max_weight"], caption=shown)
    plots.reliability(below, rows, {"old score": "old", "new reward": "reward"}, outcome="solved")
    return Picture(
        _stacked([above.read_bytes(), below.read_bytes()]),
        commit,
        "what the calibration found: weights, and success by score on held-out dialogues",
        {"criteria": found["names"]},
    )


def of_failed_gates(workspace: Path, window: Browser) -> dict[str, Picture]:
    """A preflight that fails, as the Prefect UI shows it: a failed gate, and the table of its round."""
    small = ["--workspace", str(workspace), "--set", f"pool.n={ROWS}"]
    _rc1("build-pool", *small, ends=0)
    pool = workspace / "data/rollouts/rc1_seed.jsonl"
    rows = pool.read_text(encoding="utf-8").splitlines()
    copies = [json.dumps({**json.loads(row), "id": f"copy-{number}"}) for number, row in enumerate(rows[:COPIED])]
    pool.write_text("\n".join([*rows, *copies]) + "\n", encoding="utf-8")
    _rc1("preflight", *small, ends=2)
    said = f"a pool of {ROWS:,} rows with {COPIED} of them copied in again"
    commit = _commit(workspace)
    with _served(workspace) as server:
        url = server.url
        failed = [one for one in _asked(server, "task_runs") if one["state_name"] == "GateFailed"]
        gates = {one["name"].rpartition(": ")[2]: one["id"] for one in failed}
        tables = {one["key"]: one["id"] for one in _asked(server, "artifacts")}
        if _GATE not in gates:
            raise RuntimeError(f"the gate {_GATE} did not fail on {said}; these did: {', '.join(gates) or 'none'}")
        window.open(f"{url}/ui-settings", width=WIDTH, height=WIDTH)  # of the same origin, to log in before the UI
        window.run(f"localStorage.setItem('prefect-password', '{_login(server)}')")
        gate = _failed_gate(window, f"{url}/runs/task-run/{gates[_GATE]}")
        table, shown = _failed_round(window, f"{url}/artifacts/artifact/{tables['rc1-round1-gates']}")
    return {
        "gate_failed.png": Picture(gate, commit, said, {"gates": [_GATE]}),
        "round_failed.png": Picture(table, commit, said, {"gates": shown}),
    }


def _failed_gate(window: Browser, address: str) -> bytes:
    """The page of a gate's task run: the verdict, and why."""
    window.open(address, width=WIDTH, height=WIDTH)
    lines = "[...document.querySelectorAll('.log-row')]"
    window.wait(f"{lines}.some(one => one.innerText.includes('GateFailed'))", "the gate's log")
    bottom = window.run(f"return Math.max(...{lines}.map(one => one.getBoundingClientRect().bottom))")
    return window.picture(bottom=bottom + 24, width=WIDTH)


def _failed_round(window: Browser, address: str) -> tuple[bytes, list[str]]:
    """The table of a round's gates down to the last that did not simply pass, and the names in it."""
    window.open(address, width=WIDTH, height=WIDTH)
    rows = "[...document.querySelectorAll('tbody tr')]"
    window.wait(f"{rows}.length", "the table of gates")
    notable = f"{rows}.filter(one => ['ERROR', 'FAILED', 'waived'].includes(one.cells[1].innerText.trim()))"
    names = window.run(f"return [...new Set({notable}.map(one => one.cells[0].innerText.trim()))]")
    bottom = window.run(f"return {notable}.at(-1).getBoundingClientRect().bottom")
    return window.picture(bottom=bottom, width=WIDTH), names


def _rc1(*arguments: str, ends: int) -> None:
    """A command of RC1, which has to end with this code."""
    code = "from rc1_lib.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments], env=environment, capture_output=True, text=True
    )
    if done.returncode != ends:
        raise RuntimeError(
            f"rc1 {' '.join(arguments)} ended with {done.returncode}, expected {ends}: "
            f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )


@contextmanager
def _served(workspace: Path) -> Iterator[Server]:
    server = start_server(workspace, free_port())
    try:
        yield server
    finally:
        server.stop()


def _login(server: Server) -> str:
    """The password as the UI keeps it and as requests send it."""
    return base64.b64encode(server.password.encode()).decode()


def _asked(server: Server, what: str) -> list[dict[str, Any]]:
    """All of a kind that the server knows: it knows one run."""
    headers = {"Content-Type": "application/json", "Authorization": f"Basic {_login(server)}"}
    request = urllib.request.Request(f"{server.url}/api/{what}/filter", b"{}", headers)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as reply:
        found: list[dict[str, Any]] = json.load(reply)
    return found


def _commit(workspace: Path) -> str:
    """Of the code that ran, and whether it had been changed since."""
    place = workspace / "reports/rc1/git_commit.txt"
    commit = place.read_text(encoding="utf-8").strip()
    if re.fullmatch("[0-9a-f]{40}", commit) is None:
        raise RC1Error(f"{place}: found '{commit}', expected a commit; make the pictures from a run of a git checkout")
    changed = (workspace / "reports/rc1/git_status.txt").read_text(encoding="utf-8").strip()
    return f"{commit[:12]} with uncommitted changes" if changed else commit[:12]


def _stacked(pictures: Sequence[bytes]) -> bytes:
    images = [Image.open(io.BytesIO(one)).convert("RGB") for one in pictures]
    whole = Image.new("RGB", (max(one.width for one in images), sum(one.height for one in images)), "white")
    top = 0
    for one in images:
        whole.paste(one, (0, top))
        top += one.height
    return _png(whole)


def _png(image: Image.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _captioned(picture: Picture) -> bytes:
    """As wide as all are, with a line in small type below."""
    inner = Image.open(io.BytesIO(picture.content)).convert("RGB")
    whole = Image.new("RGB", (WIDTH, inner.height + _FOOT), "white")
    margin = (WIDTH - inner.width) // 2
    whole.paste(inner, (margin, 0))
    font = ImageFont.truetype(font_manager.findfont("DejaVu Sans"), _TYPE)
    line = f"Run of commit {picture.commit}; {picture.said}"
    ImageDraw.Draw(whole).text((margin + 18, inner.height + 8), line, fill="#5c646e", font=font)
    return _png(whole)


def _write(pictures: Mapping[str, Picture]) -> None:
    record = {}
    for name, picture in pictures.items():
        content = _captioned(picture)
        (FOLDER / name).write_bytes(content)
        record[name] = entry(content, picture.commit, picture.shown)
        print(f"docs/images/{name}: {len(content):,} bytes, run of commit {picture.commit}")
    RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
