"""Checks that a preflight can finish, before anything is built, the judge is called, or a file is written."""

from __future__ import annotations

from rc1_lib.calibration.hacking_checks import GATE as REWARD_HACKING
from rc1_lib.calibration.hacking_checks import MIN_PROMPTS
from rc1_lib.calibration.judged_rows import dimensions
from rc1_lib.calibration.reward_hacking import library
from rc1_lib.check_words import gate_sentence
from rc1_lib.config.file import flatten, load_config
from rc1_lib.config.source_path import are_finished, source_path
from rc1_lib.errors import ConfigError
from rc1_lib.evidence import Evidence
from rc1_lib.gates.gate_list import PREFLIGHT, evaluate
from rc1_lib.judge.budget import check_evaluation_calls
from rc1_lib.judge.judge import check_judge
from rc1_lib.judge.providers import LIVE
from rc1_lib.masking import mask, mask_tree, secrets
from rc1_lib.preflight.ticket import check_base
from rc1_lib.preflight.ticket_key import check_can_sign
from rc1_lib.records import PASSING
from rc1_lib.run import CONFIG_OF_PROFILE, Run
from rc1_lib.runtime.libraries import check_hub, lacking_for_training
from rc1_lib.sources.local import files_of_tasks
from rc1_lib.sources.rows import check_dialogues
from rc1_lib.training.derived import BASE
from rc1_lib.vouched import CONFIG, GIVEN
from rc1_lib.workspace.artifacts import PROJECT_ROOT

OWN_WAIVERS = "gates.waivers={judge_agreement: no labels yet}"
"""Waivers for a live judge that nobody has compared with people's labels yet."""


def check_preconditions(run: Run, *, calibrates: bool, ticket: bool) -> None:
    """Reject a preflight that could not finish.

    A command calls this before a server starts. The flow calls it too, since a worker starts flows without a command.

    Args:
        calibrates: whether a calibration may be due.
        ticket: whether the preflight ends with a ticket.

    Raises:
        RC1Error: says what to change.
    """
    check_no_secret(run)
    check_waiver_reasons(run)
    if calibrates:
        check_can_calibrate(run)
        check_source(run)
        check_given(run)
        if not run.config.why_not_judged:
            check_judge(run)
        if run.config.judge.provider in LIVE:
            check_can_train(run)
    if ticket:
        check_can_issue(run)


_SECRET = 12
"""Length of the shortest secret that is looked for: shorter ones may be words, such as the key of a free server."""


def check_no_secret(run: Run) -> None:
    """Reject settings that contain a secret of the environment: ticket and reports must hold the settings unmasked.

    Raises:
        ConfigError: names the setting, never its value.
    """
    hidden = [secret for secret in secrets() if len(secret) >= _SECRET]
    given = [override.partition("=")[::2] for override in run.overrides]
    for key, value in [*flatten(run.config.model_dump(mode="json")).items(), *given]:
        if mask_tree(value, hidden) != value:
            raise ConfigError(
                f"{mask(key, hidden)}: contains a secret of the environment, which ticket and reports would show; take "
                f"it out, since RC1 reads keys from the environment alone"
            )


def check_waiver_reasons(run: Run) -> None:
    """Reject the waivers that profile `local` ships for its free judge where another judge scores.

    Raises:
        ConfigError: says which, and what to set.
    """
    if untrue := untrue_waivers(run):
        raise ConfigError(
            f"gates.waivers: {', '.join(untrue)}: found the reason of {CONFIG_OF_PROFILE['local']} for the local "
            f"rubric, but judge.provider is '{run.config.judge.provider}'; set waivers that are true of it, for "
            f"example --set '{OWN_WAIVERS}'"
        )


def untrue_waivers(run: Run) -> list[str]:
    """Return the gates that are waived as profile `local` waives them for its free judge, although another scores."""
    config = run.config
    if config.judge.provider == "rubric" or config.why_not_judged:
        return []
    shipped = load_config(PROJECT_ROOT / CONFIG_OF_PROFILE["local"]).gates.waivers
    return [gate for gate, reason in config.gates.waivers.items() if shipped.get(gate) == reason]


def check_can_train(run: Run) -> None:
    """Reject a configuration that can never be trained with its base, whatever the judge answers.

    Raises:
        ConfigError: says what to change.
    """
    check_settings(run)
    if BASE.applies(run) and not lacking_for_training():
        from rc1_lib.training.ppo_run import usable_base  # imports torch, which is slow

        usable_base(run)
    evidence = Evidence(run)
    for name in (spec.name for spec in PREFLIGHT if spec.reads == (CONFIG.name,)):
        result = evaluate(name, evidence, 1)
        if result.status not in PASSING:
            raise ConfigError(
                f"the gate {name} would fail: {gate_sentence(result)}. No call of the judge was made; "
                f"`rc1 config verify` shows all that a configuration must have"
            )


def check_settings(run: Run) -> None:
    """Reject settings with which no training could start or be evaluated; reads no data and no base.

    Raises:
        ConfigError: says what to change.
    """
    config, held_out = run.config, run.config.training.held_out.prompts
    check_evaluation_calls(config, seeds=1)
    if held_out < (needed := config.gates.evaluation.min_prompts):
        raise ConfigError(
            f"training.held_out.prompts: found {held_out}, expected at least {needed} (gates.evaluation.min_prompts), "
            f"or no evaluation has a verdict; raise the one or lower the other"
        )
    if config.profile == "prod":  # it trains only what came through a scale-up
        config.scale_up.check_last(config.pool.n)
    if config.pays_judged_score:
        dimensions(run)


def check_source(run: Run) -> None:
    """Reject a folder of questions that lacks files for a task of the mix, and the hub without its extra.

    Raises:
        SourceError: says which tasks, and where their files belong.
        RC1Error: names the extra.
    """
    use = run.config.sources.use
    if use == "hub":
        check_hub()
    elif use != "embedded" and (place := source_path(use, run.workspace)).is_dir():
        files_of_tasks(place, list(run.config.datasets))


def check_given(run: Run) -> None:
    """Reject a run that lacks a file which a gate or the ticket reads, and which RC1 does not make.

    Raises:
        RC1Error: names the file, and where it comes from.
    """
    for one in GIVEN:
        if one.applies(run) and not one.path(run).exists():
            one.sha256(run)  # raises


def check_can_calibrate(run: Run) -> None:
    """Reject an attack too small for its gate, unreadable own policies, and sources on which no ablation can run.

    Finished dialogues have only one per prompt.

    Raises:
        ConfigError: says what to set, or what such dialogues can be used for.
        SourceError: says where questions belong, if the file contains questions without dialogues.
    """
    attack = run.config.gates.reward_hacking
    if attack.prompts < MIN_PROMPTS and REWARD_HACKING not in run.config.gates.waivers:
        raise ConfigError(
            f"gates.reward_hacking.prompts: found {attack.prompts}, expected at least {MIN_PROMPTS}, or the "
            f"gate has no verdict on any policy; raise it"
        )
    if REWARD_HACKING not in run.config.gates.waivers:
        library(run)  # reads the user's own policies
    if are_finished(run.config, run.workspace):
        check_dialogues(source_path(run.config.sources.use, run.workspace))
        raise ConfigError(
            f"{run.config.sources.use}: has finished dialogues, one per prompt. The ablation of the penalty compares "
            f"several dialogues about one prompt, so this source allows no calibration and no ticket. "
            f"`rc1 build-pool`, `validate-pool`, `score` and `probe-scorer` accept it; for a ticket, give the "
            f"questions themselves (--sources DIR, hub or embedded)"
        )


def check_can_issue(run: Run) -> None:
    """Reject a run for which no ticket could be issued, or signed with the configured key.

    Raises:
        RC1Error: says what to change.
    """
    check_base(run)
    check_can_sign(run)
