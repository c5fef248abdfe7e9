"""Who judges, by which settings, and whether it is the test double: what tickets, weights and reports are bound to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from rc1_lib.checks import equal, info
from rc1_lib.config.file import Layer, merged, read_yaml
from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.errors import ConfigError
from rc1_lib.judge import rubric
from rc1_lib.judge.calls import TEST_DOUBLE
from rc1_lib.judge.prompt import JUDGE_SPEC, JudgeSpec, load_spec
from rc1_lib.judge.providers import LIVE, address_of
from rc1_lib.provenance.pinned_files import read_vouched
from rc1_lib.records import Check
from rc1_lib.run import Run


def model_asked(config: JudgeConfig) -> str:
    """The model that the provider is asked for; of the local rubric, its version: it is asked for as it is."""
    if config.provider == rubric.NAME:
        return rubric.version()
    return config.model or ""


def endpoint(config: JudgeConfig) -> str:
    """Whom the configuration asks: provider, address and model."""
    return f"{config.provider} {config.base_url or ''} {model_asked(config)}"


def whom(config: JudgeConfig) -> str:
    """Whom the configuration asks, for people: `openai at api.openai.com, model gpt-5-mini`."""
    if config.provider not in LIVE:
        return f"{config.provider}, on this machine"
    host = urlsplit(address_of(config.provider, config.base_url)).netloc
    return f"{config.provider} at {host}, model {config.model}"


def read_spec(run: Run) -> JudgeSpec:
    """The instructions that `judge.spec` names.

    Raises:
        ConfigError: when they are missing or damaged.
        TicketError: when they are not those that the ticket vouches for.
    """
    path = JUDGE_SPEC.path(run)
    content = None if run.vouched is None else read_vouched(run, JUDGE_SPEC.name, path)
    return load_spec(path, run.config.judge.spec, content)


def judge_identity(run: Run) -> dict[str, str]:
    """Who judges, and by which words: what a ticket names.

    Raises:
        ConfigError: when the instructions are missing or damaged.
    """
    judge = run.config.judge
    return {
        "provider": judge.provider,
        "model": judge.model or "",
        "spec": judge.spec,
        "spec_sha256": read_spec(run).sha256,
    }


def request_settings(judge: JudgeConfig) -> dict[str, Any]:
    """What decides, besides the prompt, what a judge is asked for. What a setting leaves as it was does not appear."""
    return {
        "sampling": judge.sampling.model_dump(mode="json"),
        "structured": judge.channel == "schema",
        **({"channel": judge.channel} if judge.channel == "tool" else {}),
        **({"names": dict(judge.names)} if judge.names else {}),
    }


def scoring_settings(run: Run) -> dict[str, Any]:
    """All settings that decide what a dialogue is scored with, and whether its scores count in full."""
    judge = run.config.judge
    return {
        **judge_identity(run),
        "base_url": judge.base_url or "",
        **request_settings(judge),
        "samples": judge.samples,
        "max_variance": run.config.gates.stability.max_variance,
    }


def check_model(run: Run) -> None:
    """Refuse another judge than the file's by the model, and at the prices, that the file has for its own.

    Raises:
        ConfigError: saying what to name.
    """
    judge = run.config.judge
    keys = {override.partition("=")[0].strip() for override in run.overrides}
    if judge.model is None or "judge.provider" not in keys or keys & {"judge", "judge.model"}:
        return
    written = merged([Layer(file, read_yaml(file)) for file in run.config_files])
    whose = written["judge"].get("provider", judge.provider)
    if whose != judge.provider:
        raise ConfigError(
            f"judge.provider is '{judge.provider}' (SCORER_PROVIDER or the command line), but judge.model is "
            f"'{judge.model}', which {run.config_path.name} has for {whose}; name its own by --set judge.model=NAME, "
            f"and set judge.prices to it"
        )


def double_checks(run: Run, test_double: object) -> tuple[Check, ...]:
    """The mark; in profile `prod` it is red. None only where `test_double` is False: a report may say anything."""
    if test_double is False:
        return ()
    mark = f"{TEST_DOUBLE}: these scores are made up"
    if run.config.profile == "prod":
        return (equal(mark, True, False, "profile prod takes a real judge's scores only: use a fresh workspace"),)
    return (info(mark, True),)


def said_double(report: Mapping[str, Any] | None) -> object:
    """What a report says of the test double; None where it says nothing, which is no denial."""
    scoring = (report or {}).get("scoring")
    return scoring.get("test_double") if isinstance(scoring, Mapping) else None
