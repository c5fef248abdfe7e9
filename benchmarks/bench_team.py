"""Test a team's server with PostgreSQL and two workers on one workspace, one of which is killed during a run.

    python benchmarks/bench_team.py

Starts PostgreSQL (Debian: `apt-get install postgresql`), a Prefect server with the variables of
deployments/containers/compose.yaml, `rc1 serve --server` and a second worker, all on the loopback interface, and starts
every flow by its deployment. Prints the results in docs/experiments/teams.md and writes benchmarks/results/team.json.
Ends with 1 if a result is not as expected. Without PostgreSQL it runs nothing, says so, and ends with 77.
"""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
import yaml
from lacking import not_run

from deployments import children
from deployments.serve import POOL
from deployments.server import api_of, free_port, healthy, settings
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.workspace.artifacts import PROJECT_ROOT, now, write_json
from tests.conftest import SMALL
from tests.ticketed import TINY
from tests.training.tiny_world import pool_rows, write_base

RESULT = Path(__file__).parent / "results/team.json"
COMPOSE = PROJECT_ROOT / "deployments/containers/compose.yaml"
LIMIT_S = 900.0
SEEDS = (20250820, 20250821, 20250822)
LENIENT = tuple(
    f"gates.evaluation.{key}"
    for key in (
        "min_needed_up_pp=-100", "min_hard_up_pp=-100", "min_overclar_down_pct=-100000", "max_turns_up=100",
        "min_asking_up_pp=-200", "max_truth_down_pp=100",
    )
)  # fmt: skip
"""Every policy passes: the bytes after a kill must be equal, not good."""
OVERRIDES = (*SMALL, *TINY, "training.warm_start.steps=3", "training.held_out.prompts=24", *LENIENT)
HELD = {"PENDING", "RUNNING", "CANCELLING"}
"""States in which a run occupies the work pool's only slot."""


def programs() -> Path | None:
    """Return the folder of PostgreSQL's programs; None if it is not installed."""
    found = shutil.which("initdb")
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True) + ([Path(found).parent] if found else [])
    needed = ("initdb", "postgres", "createdb")
    return next((place for place in places if all((place / name).exists() for name in needed)), None)


def wait(said: str, reached: Callable[[], bool], limit_s: float = LIMIT_S) -> float:
    """Wait until `reached` returns True, and return the seconds that took."""
    began = time.monotonic()
    while not reached():
        if time.monotonic() - began > limit_s:
            raise TimeoutError(f"not within {limit_s:.0f} s: {said}")
        time.sleep(0.2)
    return time.monotonic() - began


@contextmanager
def postgres(place: Path, folder: Path, password: str) -> Iterator[int]:
    """Run a separate cluster on the loopback interface, and yield its port; as user `postgres` if we are root."""
    user = "postgres" if os.geteuid() == 0 else getpass.getuser()
    folder.mkdir()
    (folder / "password").write_text(password)
    if user == "postgres":
        folder.parent.chmod(0o755)
        shutil.chown(folder, user)
        shutil.chown(folder / "password", user)
    data, port = folder / "data", free_port()
    as_user: dict[str, Any] = {"user": user, "extra_groups": []} if user == "postgres" else {}
    made = [place / "initdb", "-D", data, "-U", "prefect", "-A", "scram-sha-256", f"--pwfile={folder / 'password'}"]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL, cwd=folder, **as_user)
    with (folder.parent / "postgres.log").open("ab") as log:
        process = subprocess.Popen(
            [place / "postgres", "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", folder],
            stdout=log, stderr=log, cwd=folder, preexec_fn=children.end_with(os.getpid()), **as_user,
        )  # fmt: skip
    try:
        create = [place / "createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "prefect", "prefect"]
        quietly: dict[str, Any] = {"env": {**os.environ, "PGPASSWORD": password}, "stderr": subprocess.DEVNULL}
        wait("PostgreSQL answers", lambda: subprocess.run(create, **quietly).returncode == 0, 60)
        yield port
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


@dataclass
class Team:
    """The processes of a team, and samples of the states of its runs.

    Attributes:
        folder: the folder of all files.
        serve: `rc1 serve --server`, whose worker is its child.
        second: the second worker.
        asked: ids of the runs that were started.
        samples: for each request to the server, the state of every run.
    """

    folder: Path
    serve: subprocess.Popen[bytes]
    second: subprocess.Popen[bytes]
    asked: list[Any] = field(default_factory=list)
    samples: list[dict[str, str]] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        """The workspace of the runs."""
        return self.folder / "workspace"

    def start(self, deployment: str, **parameters: Any) -> Any:
        """Start a deployment as `prefect deployment run` does, and return the run's id."""
        from prefect.client.orchestration import get_client

        with get_client(sync_client=True) as client:
            found = client.read_deployment_by_name(f"rc1/{deployment}")
            given = {"overrides": list(OVERRIDES), **parameters}
            self.asked.append(client.create_flow_run_from_deployment(found.id, parameters=given).id)
        return self.asked[-1]

    def run(self, run_id: Any) -> Any:
        """Fetch a run from the server, and record the states of all runs."""
        from prefect.client.orchestration import get_client
        from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

        with get_client(sync_client=True) as client:
            runs = client.read_flow_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=self.asked)))
        self.samples.append({str(run.id): run.state.type.value for run in runs if run.state})
        return next(run for run in runs if run.id == run_id)

    def state(self, run_id: Any) -> str:
        """Return the name of a run's state."""
        return str(self.run(run_id).state.name)

    def ended(self, run_id: Any) -> bool:
        """Return whether a run has ended."""
        return bool(self.run(run_id).state.is_final())

    def whose(self, run_id: Any) -> str:
        """Return which worker started a run."""
        pid = int(str(self.run(run_id).infrastructure_pid).rpartition(":")[2])
        if pid in children.descendants(self.second.pid):
            return "second"
        return "first" if pid in children.descendants(self.serve.pid) else "nobody"

    def most_at_once(self) -> int:
        """Return the most runs that occupied the slot at the same time."""
        return max(sum(state in HELD for state in seen.values()) for seen in self.samples)

    def nights(self) -> list[str]:
        """Return when the server has scheduled the next nightly runs."""
        from prefect.client.orchestration import get_client

        with get_client(sync_client=True) as client:
            nightly = client.read_deployment_by_name("rc1/nightly").id
            runs = [run for run in client.read_flow_runs(limit=200) if run.deployment_id == nightly]
        return sorted(str(run.next_scheduled_start_time) for run in runs)

    def prints(self) -> dict[str, str]:
        """Return the fingerprint of every checkpoint."""
        folders = self.workspace.glob("checkpoints/**/step_*")
        return {str(path.relative_to(self.workspace)): fingerprint(path) for path in sorted(folders) if path.is_dir()}

    def steps(self) -> int:
        """Return the number of logged steps."""
        log = self.workspace / "reports/metrics.jsonl"
        return log.read_bytes().count(b"\n") if log.exists() else 0


def server_command(url: str) -> list[str]:
    """Return the compose file's command of the server, for the loopback interface."""
    return [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", url.rpartition(":")[2]]


def server_environment(folder: Path, database: int, password: str, auth: str) -> dict[str, str]:
    """Return the compose file's variables of the server, for the loopback interface."""
    chosen = dict(yaml.safe_load(COMPOSE.read_text())["services"]["server"]["environment"])
    chosen |= {"PREFECT_SERVER_DATABASE_HOST": "127.0.0.1", "PREFECT_SERVER_DATABASE_PORT": str(database)}
    chosen |= {"PREFECT_SERVER_DATABASE_PASSWORD": password, "PREFECT_SERVER_API_AUTH_STRING": auth}
    chosen["PREFECT_SERVER_UI_API_URL"] = ""
    home = {"PREFECT_HOME": str(folder / "home"), "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    return {**os.environ, **chosen, **home}


@contextmanager
def process(command: Sequence[str], environment: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program that ends with the block."""
    with log.open("ab") as output:
        started = children.start(command, environment, output)
    try:
        yield started
    finally:
        children.stop(started)


@contextmanager
def team(place: Path, folder: Path) -> Iterator[Team]:
    """Start database, server and two workers."""
    password, auth = secrets.token_hex(8), f"admin:{secrets.token_hex(8)}"
    url = f"http://127.0.0.1:{free_port()}"
    torch.set_num_threads(1)
    write_base(folder / "workspace/base", pool_rows(40), steps=400)  # until it asks now and then
    with ExitStack() as stack:
        database = stack.enter_context(postgres(place, folder / "postgres", password))
        environment = server_environment(folder, database, password, auth)
        stack.enter_context(process(server_command(url), environment, folder / "server.log"))
        wait("the server answers", lambda: healthy(url), 180)
        here = {**os.environ, **settings(folder / "workspace", url), "PREFECT_API_AUTH_STRING": auth}
        os.environ.update(here)  # before Prefect is imported
        serve = [sys.executable, "-m", "deployments.serve", "--server", api_of(url)]
        serve += ["--workspace", str(folder / "workspace")]
        first = stack.enter_context(process(serve, here, folder / "serve.log"))
        wait("it is served", lambda: "Ctrl-C ends worker" in (folder / "serve.log").read_text(), 180)
        worker = [sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL, "--type", "process"]
        second = stack.enter_context(process(worker, here, folder / "second.log"))
        yield Team(folder, first, second)


def one_at_a_time(here: Team) -> dict[str, Any]:
    """Start three trainings at once with two workers."""
    began = time.monotonic()
    runs = [here.start("train", seeds=[seed]) for seed in SEEDS]
    workers: dict[str, str] = {}
    while not all(here.ended(run) for run in runs):
        for run in runs:
            if here.state(run) == "Running" and str(run) not in workers and (who := here.whose(run)) != "nobody":
                workers[str(run)] = who
        time.sleep(0.5)
    states = [here.state(run) for run in runs]
    return {"states": states, "workers": sorted(workers.values()), "seconds": time.monotonic() - began}


def worker_killed(here: Team) -> dict[str, Any]:
    """Kill a worker during a training; the same training, started meanwhile, must wait for the slot."""
    undisturbed = here.prints()
    for left in ("checkpoints", "reports/metrics.jsonl", "reports/rc1/segments", "reports/rc1/starts"):
        path = here.workspace / left
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    run = here.start("train", seeds=[SEEDS[0]])
    wait("it is at work", lambda: here.steps() > 0)
    who = here.whose(run)
    pid = int(str(here.run(run).infrastructure_pid).rpartition(":")[2])
    victim = here.second.pid if who == "second" else children.descendants(here.serve.pid)[0]
    os.kill(victim, signal.SIGKILL)
    gone = wait("its process is gone", lambda: not _at_work(pid), 60)
    following = here.start("train", seeds=[SEEDS[0]])
    waited = 0
    began = time.monotonic()
    while here.state(run) == "Running":
        waited += here.state(following) in ("Scheduled", "Late", "AwaitingConcurrencySlot")
        time.sleep(1)
    crashed = time.monotonic() - began
    wait("the next one ends", lambda: here.ended(following))
    again = here.prints()
    return {
        "worker": who, "process_gone_s": gone, "crashed_s": crashed, "state": here.state(run),
        "message": here.run(run).state.message, "next": here.state(following), "looks_while_it_waited": waited,
        "same_bytes": {name: again.get(name) for name in again} == {name: undisturbed.get(name) for name in again},
        "checkpoints": len(again),
    }  # fmt: skip


def _at_work(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def process_killed(here: Team) -> dict[str, Any]:
    """Kill the process of a run, but not its worker."""
    run = here.start("preflight", build="never", refresh=True)
    wait("it is at work", lambda: here.state(run) == "Running")
    wait("it has a process", lambda: here.run(run).infrastructure_pid is not None)
    time.sleep(5)
    os.kill(int(str(here.run(run).infrastructure_pid).rpartition(":")[2]), signal.SIGKILL)
    return {"crashed_s": wait("it is marked", lambda: here.ended(run)), "state": here.state(run)}


def main() -> int:
    """Run everything, and return 1 if a result is not as expected."""
    place = programs()
    if place is None:
        how = "apt-get install postgresql (Debian) && python benchmarks/bench_team.py"
        return not_run("a team's server", "PostgreSQL's programs are missing", how)
    folder = Path(tempfile.mkdtemp(prefix="rc1-team-"))
    try:
        with team(place, folder) as here:
            first = here.start("preflight")
            seconds = wait("the ticket", lambda: here.ended(first))
            found: dict[str, Any] = {"recorded": now(), "preflight": here.state(first), "preflight_s": seconds}
            found["nights_scheduled"] = here.nights()[:2]
            found["trainings"] = one_at_a_time(here)
            found["worker_killed"] = worker_killed(here)
            found["process_killed"] = process_killed(here)
            found["most_at_once"] = here.most_at_once()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    write_json(RESULT, found)
    print("\n".join(f"{key}: {value}" for key, value in found.items()))
    killed = found["worker_killed"]
    well = found["preflight"] == "TicketIssued" and found["most_at_once"] == 1 and killed["same_bytes"]
    well = well and bool(found["nights_scheduled"])
    return 0 if well and killed["state"] == found["process_killed"]["state"] == "Crashed" else 1


if __name__ == "__main__":
    sys.exit(main())
