"""`config verify` and `config show`."""

from __future__ import annotations

from rc1_lib.cli.session import Session
from rc1_lib.cli.verdicts import conclude, judge

_GATES = ("training_config", "overclar_penalty")
_REPORT = "reports/rc1/config_verify.json"


def show(session: Session) -> int:
    """Print the effective configuration: the file with --set and the environment applied."""
    from rc1_lib.config_file import dump_config
    from rc1_lib.masking import mask_tree, secrets

    run = session.open()
    hidden = secrets()
    session.show(dump_config(run.config, hidden).rstrip())
    session.document(mask_tree(run.config.model_dump(mode="json"), hidden))
    return 0


def verify(session: Session) -> int:
    """Check that the configuration is whole and may train, and print the effective one."""
    from rc1_lib.config_file import dump_config
    from rc1_lib.evidence import Evidence
    from rc1_lib.masking import mask_tree, secrets
    from rc1_lib.preflight.gates import check_waivers
    from rc1_lib.scoring.providers import check_provider

    run = session.open()
    check_waivers(Evidence(run))
    check_provider(run.config.judge.provider)
    hidden = secrets()
    session.show(dump_config(run.config, hidden).rstrip())
    calibrated = run.workspace.path(run.config.weights).exists()
    results = judge(session, run, (*_GATES, *(["weights"] * calibrated)))
    if not calibrated:
        session.show(f"no weights yet ({run.config.weights}): rc1 preflight, or rc1 calibrate, finds them")
    further = mask_tree({"config": run.config.model_dump(mode="json"), "overrides": run.overrides}, hidden)
    return conclude(session, run, f"configuration {run.workspace.name(run.config_path)}", results, _REPORT, further)
