"""`config verify` and `config show`, and the small local configuration that `train` takes too."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from rc1_lib.cli.endings import Ending, again, end, then
from rc1_lib.cli.session import Session
from rc1_lib.cli.verdicts import conclude, judge
from rc1_lib.errors import ConfigError

_GATES = ("training_config", "overclar_penalty")
_REPORT = "reports/rc1/config_verify.json"


def show(session: Session) -> int:
    """Print the effective configuration: the file, with --set and the environment applied."""
    from rc1_lib.config.file import dump_config
    from rc1_lib.masking import mask_tree, secrets

    if (small := train_config_file(session)) is not None:
        return _shown(session, small.name, _show_small(session, small))
    run = session.open()
    hidden = secrets()
    session.show(dump_config(run.config, hidden).rstrip())
    name = run.workspace.name(run.config_path)
    return _shown(session, name, mask_tree(run.config.model_dump(mode="json"), hidden))


def _shown(session: Session, name: str, document: dict[str, Any]) -> int:
    words = f"configuration {name} as it takes effect, not judged"
    with redirect_stdout(sys.stderr):  # so that `rc1 config show > FILE` writes a configuration and nothing else
        return end(session, Ending("done", words, following=then(session, "config verify")), document)


def verify(session: Session) -> int:
    """Check that the configuration is whole and may train, and print the effective one.

    Of a small local configuration (--config configs/train_local.yaml) also that its engine learns from its rows.
    """
    from rc1_lib.config.file import dump_config
    from rc1_lib.gates.training import order_of_pay
    from rc1_lib.judge.providers import check_provider
    from rc1_lib.masking import mask_tree, secrets
    from rc1_lib.preflight.gate_list import check_waivers

    if (small := train_config_file(session)) is not None:
        return _verify_small(session, small)
    run = session.open()
    check_waivers(run)
    check_provider(run.config.judge.provider)
    hidden = secrets()
    session.show(dump_config(run.config, hidden).rstrip())
    session.show(f"what training pays: {order_of_pay(run.config)}")
    calibrated = run.config.pays_judged_score and run.workspace.path(run.config.weights).exists()
    results = judge(session, run, (*_GATES, *(["weights"] * calibrated)))
    if not calibrated and run.config.pays_judged_score:
        session.show(f"no weights yet ({run.config.weights}): rc1 preflight, or rc1 calibrate, finds them")
    further = mask_tree({"config": run.config.model_dump(mode="json"), "overrides": run.overrides}, hidden)
    return conclude(
        session, run, f"configuration {run.workspace.name(run.config_path)}", results, _REPORT, further,
        after_pass=then(session, "preflight"), after_fail=again(session, "config verify"),
    )  # fmt: skip


def _verify_small(session: Session, path: Path) -> int:
    from rc1_lib.training.train_config import check_of_rows, load_train_config

    check_of_rows(load_train_config(path, session.options.settings))
    document = {"pass": True, "config": _show_small(session, path), "overrides": list(session.options.settings)}
    words = f"{path.name}: a small local configuration, whole; no gate asks about it"
    return end(session, Ending("pass", words, following=then(session, "train")), document)


def _show_small(session: Session, path: Path) -> dict[str, Any]:
    """Print the effective small configuration; returns it."""
    import yaml

    from rc1_lib.masking import mask_tree, secrets
    from rc1_lib.training.train_config import load_train_config

    config = load_train_config(path, session.options.settings)
    tree: dict[str, Any] = mask_tree(config.model_dump(mode="json"), secrets())
    session.show(yaml.safe_dump(tree, sort_keys=False, allow_unicode=True).rstrip())
    return tree


def train_config_file(session: Session) -> Path | None:
    """Find the small local configuration that --config names; None if it is a run's, or cannot be read.

    Raises:
        ConfigError: when a profile, or sources, are asked for as well.
    """
    given = session.options.config
    if given is None:
        return None
    from rc1_lib.config.file import merged, read_layers
    from rc1_lib.training.train_config import is_train_config

    path = given if given.is_absolute() or given.exists() else session.workspace.find(str(given))
    if not path.is_file() or not is_train_config(merged(read_layers(path))):
        return None
    for flag in ("profile", "sources"):
        if getattr(session.options, flag) is not None:
            raise ConfigError(f"--{flag}: {path.name} has none; leave it out")
    session.overrides = session.common = session.options.settings
    return path
