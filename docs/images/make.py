"""Make every picture of README and docs from a finished run: `make pictures`, or `make pictures RUN=WORKSPACE`.

What the run has left is drawn again by today's code. The failed gate is that of a preflight on a small pool that is
damaged here, as the tutorial does it; it wants a browser. Below each picture is the commit of the run that it shows.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from browser import Browser, browser, missing
from matplotlib import font_manager
from PIL import Image, ImageDraw, ImageFont
from record import FOLDER, PICTURES, RECORD, ROOT, entry

from deployments.server import Server, free_port, start_server
from rc1_lib.errors import RC1Error
from rc1_lib.plots.evaluation import asking
from rc1_lib.workspace.artifacts import read_json

NOT_MADE, REFUSED = 77, 2
WIDTH = 1000
"""Pixels: as wide as GitHub shows a page's text."""
_FOOT, _TYPE = 30, 13
ASKING, GATE = PICTURES
ROWS, COPIED, _GATE = 1200, 60, "duplicates"


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture without the line below it.

    Attributes:
        content: a PNG.
        commit: of the run that it shows.
        said: what else is said below it.
        gates: the gates that are named in it.
    """

    content: bytes
    commit: str
    said: str
    gates: Sequence[str] = ()


def main(arguments: Sequence[str]) -> int:
    """Make them; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, nargs="?", default=ROOT, help="workspace of a finished run")
    workspace = parser.parse_args(arguments).run.resolve()
    if not (workspace / "reports/train.json").is_file():
        print(
            f"{workspace}: reports/train.json is missing, expected the workspace of a finished run; "
            f"do `make run` first, or name another one: make pictures RUN=WORKSPACE",
            file=sys.stderr,
        )
        return REFUSED
    for name in ("BASE_MODEL", "RUN_MODE", "SCORER_BASE_URL", "SCORER_PROVIDER"):  # would change what a run is
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:
        try:
            _write(ASKING, of_run(workspace, Path(folder) / "asking.png"))
            if lacking := missing():
                print(
                    f"NOT MADE: {GATE}: {lacking} is not installed. To make it: install it and its driver (Debian: "
                    f"apt-get install chromium chromium-driver), then make pictures",
                    file=sys.stderr,
                )
                return NOT_MADE
            with browser() as window:
                _write(GATE, of_a_failed_gate(Path(folder) / "try", window))
        except RC1Error as error:
            print(error, file=sys.stderr)
            return REFUSED
    return 0


def of_run(workspace: Path, drawn: Path) -> Picture:
    """When the policy of a finished run asks; nothing is written into its workspace."""
    evaluation = read_json(workspace / read_json(workspace / "reports/train.json")["evaluation"])
    seeds = len(evaluation["prompts"])
    prompts = evaluation["modes"]["sampled"]["overall"]["prompts"] // seeds
    asking(drawn, evaluation)
    said = f"evaluation of {seeds} seed(s) on {prompts:,} held-out prompts"
    return Picture(drawn.read_bytes(), _commit(workspace), said)


def of_a_failed_gate(workspace: Path, window: Browser) -> Picture:
    """A gate that fails in a preflight, as the Prefect UI shows it."""
    small = ["--workspace", str(workspace), "--set", f"pool.n={ROWS}"]
    _rc1("build-pool", *small, ends=0)
    pool = workspace / "data/rollouts/rc1_seed.jsonl"
    rows = pool.read_text(encoding="utf-8").splitlines()
    copies = [json.dumps({**json.loads(row), "id": f"copy-{number}"}) for number, row in enumerate(rows[:COPIED])]
    pool.write_text("\n".join([*rows, *copies]) + "\n", encoding="utf-8")
    _rc1("preflight", *small, ends=2)
    said = f"a pool of {ROWS:,} rows with {COPIED} of them copied in again"
    with _served(workspace) as server:
        failed = [one for one in _asked(server, "task_runs") if one["state_name"] == "GateFailed"]
        gates = {one["name"].rpartition(": ")[2]: one["id"] for one in failed}
        if _GATE not in gates:
            raise RuntimeError(f"the gate {_GATE} did not fail on {said}; these did: {', '.join(gates) or 'none'}")
        window.open(f"{server.url}/ui-settings", width=WIDTH, height=WIDTH)  # of the same origin, to log in first
        window.run(f"localStorage.setItem('prefect-password', '{_login(server)}')")
        gate = _failed_gate(window, f"{server.url}/runs/task-run/{gates[_GATE]}")
    return Picture(gate, _commit(workspace), said, [_GATE])


def _failed_gate(window: Browser, address: str) -> bytes:
    """The page of a gate's task run: the verdict, and why."""
    window.open(address, width=WIDTH, height=WIDTH)
    lines = "[...document.querySelectorAll('.log-row')]"
    window.wait(f"{lines}.some(one => one.innerText.includes('GateFailed'))", "the gate's log")
    bottom = window.run(f"return Math.max(...{lines}.map(one => one.getBoundingClientRect().bottom))")
    return window.picture(bottom=bottom + 24, width=WIDTH)


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


def _write(name: str, picture: Picture) -> None:
    content = _captioned(picture)
    (FOLDER / name).write_bytes(content)
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    record[name] = entry(content, picture.commit, picture.gates)
    print(f"docs/images/{name}: {len(content):,} bytes, run of commit {picture.commit}")
    RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
