"""Setup and help: `init` (a folder to run in), `doctor` (would a training fail), `config`, `serve`, `failpack`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from rc1_lib.cli.endings import Ending, Failure, again, end, then
from rc1_lib.cli.options import Seed
from rc1_lib.cli.session import Session, stages
from rc1_lib.cli.streams import unlogged, visible
from rc1_lib.cli.tables import table
from rc1_lib.cli.verdicts import conclude, judge
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.runtime.libraries import quieten

if TYPE_CHECKING:
    from rc1_lib.doctor.finding import Finding

_GATES = ("training_config", "overclar_penalty")
_REPORT = "reports/rc1/config_verify.json"


def init(
    session: Session,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder; created if missing.")],
) -> int:
    """Copy configurations, judge instructions, templates and the bundled tiny model into a folder.

    Existing files are not overwritten. Every command then works in that folder, or elsewhere with it as --workspace.
    """
    from rc1_lib.workspace.folder import lay_out

    root = folder.resolve()
    parts = lay_out(root)
    session.show(*(f"{what}: {len(part)} files" for what, part in parts.items()))
    files = [name for part in parts.values() for name in part]
    return end(session, Ending("done", f"{len(files)} files in {root}"), {"folder": str(root), "files": files})


def doctor(
    session: Session,
    seed: Seed = None,
    learnability: Annotated[
        bool,
        typer.Option(
            "--learnability",
            help="Also let the initial policy play prompts several times, which takes minutes: do rewards of a prompt "
            "differ, could the evaluation show a gain? A live judge is asked. Writes reports/learnability.json.",
        ),
    ] = False,
) -> int:
    """Make the checks of a training before it: ticket, base, rows, judge, servers, disk, memory. Writes nothing.

    The settings are those that the workspace has recorded, with this command's flags on top, as for the training.
    """
    from rc1_lib.doctor.finding import Finding
    from rc1_lib.doctor.looks import examined
    from rc1_lib.scale_up.conditions import check_grown

    run = session.open({"pool.seed": seed}, remembered=True)
    quieten(hub=False)
    small = dict[str, Finding]()
    try:
        check_grown(run)
    except RC1Error as error:
        small["scale_up"] = Finding("", str(error))
    with stages():
        found = {**examined(run, plays=learnability and not small), **small}  # a live judge would be asked for nothing
    rows = [
        (name, Text(*(("FAILED", "bold red") if one.failed else ("ok", "green"))),
         "\n-> ".join(part for part in (one.found, one.advice) if part))
        for name, one in found.items()
    ]  # fmt: skip
    session.show(table("before a training", ("check", "", "what was found, and what to do"), rows))
    looks = {name: {"failed": one.failed, **asdict(one)} for name, one in found.items()}
    code = 2 if any(one.failed for one in found.values()) else 0
    return end(session, _ending(session, found), {"exit_code": code, "looks": looks})


def _ending(session: Session, found: Mapping[str, Finding]) -> Ending:
    from rc1_lib.doctor.looks import NOT_CHECKED

    failed = {name: one for name, one in found.items() if one.failed}
    if failed:
        words = f"{len(failed)} of {len(found)} checks: {', '.join(failed)}"
        causes = {name: one for name, one in failed.items() if one.found != NOT_CHECKED}
        failures = [Failure(f"{name}: {one.found or one.advice}", one.advice) for name, one in causes.items()]
        return Ending("fail", words, failures, following=again(session, "doctor"))
    return Ending("pass", f"{len(found)} checks, ready to train")


def failpack(session: Session) -> int:
    """Pack logs, reports and configurations into reports/rc1/FAIL_<time>.tgz, without secrets, data and dialogues."""
    try:
        session.open()
    except RC1Error as error:
        # A configuration that is refused is a reason to pack, not a reason not to.
        print(f"rc1: packing without a run: {visible(str(error))}", file=sys.stderr)
    path = session.pack_failure()
    session.show(str(path))
    words = "packed, without secrets, data and dialogues (rows at fault are quoted): hand it to whoever is to help"
    return end(session, Ending("done", words), {"exit_code": 0, "failpack": str(path)})


def serve(
    session: Session,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the server, open to this machine only.")] = 4200,
    password: Annotated[
        bool,
        typer.Option("--password", help="Print the password of the server that serves the workspace now, and end."),
    ] = False,
) -> int:
    """Serve RC1's flows from a Prefect server with a web page, until interrupted."""
    quieten(hub=True)
    from deployments.serve import password_of
    from deployments.serve import serve as serve_until_interrupted

    if password:
        print(password_of(session.workspace.root), file=unlogged(session.stdout))
        return 0
    code = serve_until_interrupted(session.workspace.root, port)
    following = then(session, "serve", "--port", str(port), when="to serve again") if code else ""
    ending = Ending("fault" if code else "done", f"{session.workspace.root} is no longer served", following=following)
    return end(session, ending, None, code)


def verify_config(session: Session) -> int:
    """Check that the configuration is complete and can be trained, and print the effective one.

    For a small local configuration (--config configs/train_local.yaml), also check that its engine can learn from its
    rows.
    """
    from rc1_lib.config.file import dump_config
    from rc1_lib.config.hub_name import reads_like_folder
    from rc1_lib.gates.gate_list import check_waivers
    from rc1_lib.gates.training_config import order_of_pay
    from rc1_lib.judge.providers import check_provider
    from rc1_lib.masking import mask_tree, secrets
    from rc1_lib.preflight.preconditions import check_can_calibrate, check_settings, check_waiver_reasons
    from rc1_lib.preflight.ticket import check_base

    if (small := train_config_file(session)) is not None:
        return _verify_small(session, small)
    run = session.open()
    check_waivers(run)
    check_provider(run.config.judge.provider)
    check_settings(run)
    check_waiver_reasons(run)
    check_can_calibrate(run)
    if not reads_like_folder(run.config.base_model):  # a folder may be made later
        check_base(run)
    hidden = secrets()
    session.show(dump_config(run.config, hidden).rstrip())
    session.show(f"what training pays: {order_of_pay(run.config)}")
    calibrated = run.config.pays_judged_score and run.workspace.path(run.config.weights).exists()
    results = judge(session, run, (*_GATES, *(["weights"] * calibrated)))
    if not calibrated and run.config.pays_judged_score:
        session.show(f"no weights yet ({run.config.weights}): rc1 preflight or rc1 calibrate fits them")
    further = mask_tree({"config": run.config.model_dump(mode="json"), "overrides": run.overrides}, hidden)
    return conclude(
        session, run, f"configuration {run.workspace.name(run.config_path)}", results, _REPORT, further,
        after_fail=again(session, "config verify"),
    )  # fmt: skip


def _verify_small(session: Session, path: Path) -> int:
    import yaml

    from rc1_lib.masking import mask_tree, secrets
    from rc1_lib.training.train_config import check_of_rows, load_train_config

    config = load_train_config(path, session.options.settings)
    check_of_rows(config)
    tree: dict[str, Any] = mask_tree(config.model_dump(mode="json"), secrets())
    session.show(yaml.safe_dump(tree, sort_keys=False, allow_unicode=True).rstrip())
    document = {"pass": True, "config": tree, "overrides": list(session.options.settings)}
    words = f"{path.name}: a small local configuration, complete; no gate applies to it"
    return end(session, Ending("pass", words), document)


def train_config_file(session: Session) -> Path | None:
    """Return the path of the small local configuration that --config names; None if it is another kind of file.

    Raises:
        ConfigError: when --profile, --sources or --reward is given too.
    """
    given = session.options.config
    if given is None:
        return None
    from rc1_lib.config.file import merged, read_layers
    from rc1_lib.training.train_config import is_train_config

    path = given if given.is_absolute() or given.exists() else session.workspace.find(str(given))
    if not path.is_file() or not is_train_config(merged(read_layers(path))):
        return None
    for flag in ("profile", "sources", "reward"):
        if getattr(session.options, flag) is not None:
            raise ConfigError(f"--{flag}: does not apply to {path.name}, a small local configuration; leave it out")
    session.overrides = session.common = session.options.settings
    return path
