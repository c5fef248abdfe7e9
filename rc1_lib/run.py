"""One run: its workspace, its configuration, and where that came from."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rc1_lib.config.addresses import VLLM_KEY
from rc1_lib.config.file import decisive, dump_config, flatten, load_config, merged, parsed_override, read_layers
from rc1_lib.config.foreign_gates import foreign_gates
from rc1_lib.config.recorded_opening import check_recorded, head, is_unrecorded, opening_of
from rc1_lib.config.run_config import RunConfig
from rc1_lib.errors import ConfigError
from rc1_lib.masking import secrets
from rc1_lib.workspace.artifacts import PROJECT_ROOT, Workspace, default_root, sha256_json, write_checksum, write_text
from rc1_lib.workspace.file_hashes import sha256_file

CONFIG_OF_PROFILE = {"local": "configs/local.yaml", "prod": "configs/ppo_scale.yaml"}
PUBLISHED = "configs/ppo_scale.yaml"
_PUBLISHED_SHA256 = "8b795b4a3ef2c87adb10b99b072fa0d9d7315b3470dd8d552390b3944bd22a15"
"""SHA-256 of all settings that affect what a passed gate means. It is part of the code, so that an edit of only the
file is noticed."""
EFFECTIVE = "reports/config_effective.yaml"
FREE_KEYS = (
    "pool.workers", "training.processes", "judge.limits", "training.tracking", "training.checkpoints.grace_s",
)  # fmt: skip
"""Configuration keys, or sections, that do not affect what a ticket vouches for: numbers of workers, which only affect
time; the rate of requests, which also decides how many replies are given up (coverage has bounds); trackers, which
only copy metrics; and how long a stopped training may take to save its step."""

_USUAL_MODEL = {"deepseek_r1": "deepseek-reasoner", "gemini": "gemini-2.5-flash"}
"""Models of providers chosen by `--provider` or `SCORER_PROVIDER` without `judge.model`; their prices are unknown."""

_OVERRIDES = {"BASE_MODEL": "base_model", "SCORER_PROVIDER": "judge.provider", "SCORER_BASE_URL": "judge.base_url"}
_LIVE_MODE = "REWARD_LIVE_MODE"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_OWN_CODE = "gates.reward_hacking.own"
"""The only key whose files are executed."""
TICKET_KEY = "RC1_TICKET_KEY"
ENVIRONMENT = {
    "RUN_MODE": "the profile, `local` or `prod`, if `--profile` is not given",
    **{name: f"overrides `{key}`; `--set` wins over it" for name, key in _OVERRIDES.items()},
    "BASE_MODEL": "overrides `base_model`, in the small configuration `model.base`; `--set` wins over it",
    "SCORER_API_KEY": "the judge's key (or the Prefect secret `rc1-scorer-api-key`); never read from a file",
    VLLM_KEY: "the key of the vLLM server of `training.vllm`, if it requires one; never read from a file",
    TICKET_KEY: "a key (ed25519, PEM) outside the workspace: it signs tickets, and no other ticket is valid",
    _LIVE_MODE: "`1`: the judge must be live, `0`: the rubric (an error in `prod`); the configuration must agree",
}
"""Environment variables that affect a run -> their meaning."""
_SWITCH = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}


@dataclass(frozen=True, slots=True)
class Run:
    """A run, which every step receives.

    Attributes:
        workspace: the folder for everything that the run writes.
        config: the effective configuration.
        vouched: name -> SHA-256 of everything that a verified ticket pins; None if no ticket was needed.
        extended: the files that `config_path` extends, nearest first; empty if it extends none.
    """

    workspace: Workspace
    config: RunConfig
    config_path: Path
    overrides: tuple[str, ...]
    vouched: Mapping[str, str] | None = None
    extended: tuple[Path, ...] = ()

    @property
    def config_files(self) -> tuple[Path, ...]:
        """All files that the configuration came from."""
        return (self.config_path, *self.extended)

    @property
    def config_sha256(self) -> str:
        """SHA-256 of the effective configuration, without `FREE_KEYS`."""
        return sha256_json(without_free_keys(self.config.model_dump(mode="json")))

    @property
    def opening(self) -> dict[str, Any]:
        """Arguments with which `open_run` reopens it: plain values, since Prefect records a flow's parameters."""
        return {
            "profile": self.config.profile,
            "config": str(self.config_path),
            "overrides": list(self.overrides),
            "workspace": str(self.workspace.root),
        }

    def write_effective_config(self) -> Path:
        """Write the effective configuration into the workspace and return its path."""
        path = self.workspace.path(EFFECTIVE)
        write_text(path, self.effective_config())
        write_checksum(self.workspace, EFFECTIVE)
        return path

    def effective_config(self) -> str:
        """Return the effective configuration as YAML, secrets masked, below a comment on how the run was opened."""
        hidden = secrets()
        return head(self.workspace, self.config_path, self.overrides, hidden) + dump_config(self.config, hidden)


def without_free_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration's values without `FREE_KEYS`; its SHA-256 covers only these.

    Args:
        config: section -> its values, from a run or a ticket.
    """
    bare = dict(config)
    for key in FREE_KEYS:
        bare = _without(bare, key.split("."))
    return bare


def _without(tree: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return a copy without the value at `path`, if there is one."""
    first, *rest = path
    inside = tree.get(first)
    if rest:
        return {**tree, first: _without(inside, rest)} if isinstance(inside, Mapping) else dict(tree)
    return {key: value for key, value in tree.items() if key != first}


def workspace_at(folder: str | Path | None) -> Workspace:
    """Return the workspace in a folder; default: `default_root`."""
    return Workspace(Path(folder).resolve() if folder else default_root())


def recorded_config(workspace: str | Path | None) -> str | None:
    """Return the effective configuration that a workspace has recorded, or None: a ticket is valid only for its own."""
    path = workspace_at(workspace).path(EFFECTIVE)
    return str(path) if opening_of(path) is not None else None


def remembered_config(workspace: str | Path | None) -> str | None:
    """Return `recorded_config`, for a command that would take other settings without one.

    Raises:
        ConfigError: when the workspace has an effective configuration that does not say how its run was opened.
    """
    recorded, path = recorded_config(workspace), workspace_at(workspace).path(EFFECTIVE)
    if is_unrecorded(path):
        raise ConfigError(
            f"{path}: does not record how its run was opened, since the configuration lies outside workspace and "
            f"project, or holds a secret; name it with --config"
        )
    return recorded


def check_remembered_addresses(
    run: Run, by_caller: Sequence[str], *, samples: bool = True, file: str = EFFECTIVE
) -> None:
    """Reject an address outside this machine that only files of the workspace name, since a key would be sent there.

    If the project itself is in the workspace, this does not apply: who can write there can change RC1's code as well.

    Args:
        run: a run opened by what the workspace has recorded, or by its own copy of a profile's file.
        by_caller: the caller's own overrides.
        samples: whether the policy may be sampled, by a vLLM server for example.
        file: the file that opened it.

    Raises:
        ConfigError: names the key and the address, and how the caller can name it.
    """
    if PROJECT_ROOT.is_relative_to(run.workspace.root):
        return
    named = {override.partition("=")[0].strip() for override in by_caller}
    addresses = {"judge.base_url": run.config.judge.base_url}
    if samples:
        addresses["training.vllm.base_url"] = run.config.training.vllm.base_url
    # What is recorded wins over the environment, so a variable with another address names nothing.
    named |= {key for variable, key in _OVERRIDES.items() if os.environ.get(variable) == addresses.get(key)}
    for key, address in addresses.items():
        by_name = any(f"{key}.".startswith(f"{one}.") for one in named)  # or with its whole section
        if address is None or by_name or urlsplit(address).hostname in _LOOPBACK:
            continue
        raise ConfigError(
            f"{run.workspace.path(file)}: its settings make {key} {address}, but no file of a workspace decides "
            f"where a key is sent; name it yourself: --set {key}={address}, or SCORER_BASE_URL for a judge's"
        )


def open_recorded_run(
    profile: str | None,
    config: str | None,
    overrides: Sequence[str],
    workspace: str | Path | None,
    *,
    samples: bool = False,
) -> Run:
    """Open a run as `open_run`; without `config`, the settings that the workspace has recorded come first.

    Args:
        samples: whether the policy may be sampled, by a vLLM server for example.

    Raises:
        ConfigError: as `open_run` and `check_remembered_addresses`.
    """
    recorded = remembered_config(workspace) if config is None else None
    run = open_run(profile=profile, config=config or recorded, overrides=overrides, workspace=workspace)
    if recorded is not None:
        check_remembered_addresses(run, overrides, samples=samples)
    return run


def open_run(
    *,
    profile: str | None = None,
    config: str | Path | None = None,
    overrides: Sequence[str] = (),
    workspace: str | Path | None = None,
    reading: Mapping[str, str] | None = None,
) -> Run:
    """Find and load the configuration of a run.

    Args:
        profile: `local` or `prod`; default: `RUN_MODE`, else the file's, else `local`.
        config: the file; default: the profile's. The workspace's `reports/config_effective.yaml` opens the run that it
            records, with that run's file and overrides.
        overrides: `a.b=c`, applied after those of the environment (`BASE_MODEL`, `SCORER_PROVIDER`, `SCORER_BASE_URL`).
        workspace: the folder for everything that is written; default: `default_root`.
        reading: `section.key` -> a file at any path to read instead of the one that RC1 writes.

    Raises:
        ConfigError: for an unknown profile, a file of another profile, an invalid configuration, an effective one
            that does not match its record, or an address that only the workspace's copy of a profile's file names.
    """
    wanted = profile or os.environ.get("RUN_MODE") or None
    if wanted is not None and wanted not in CONFIG_OF_PROFILE:
        raise ConfigError(f"profile '{wanted}' (--profile or RUN_MODE): expected one of {', '.join(CONFIG_OF_PROFILE)}")
    place = workspace_at(workspace)
    if place.root.exists() and not place.root.is_dir():
        raise ConfigError(f"--workspace {place.root}: is a file, expected a folder")
    path = Path(config) if config else place.find(CONFIG_OF_PROFILE[wanted or "local"])
    if config and not path.is_absolute() and not path.exists():
        path = place.find(str(config))
    by_caller, named = overrides, path
    if path.resolve() == place.path(EFFECTIVE).resolve() and (opening := opening_of(path)) is not None:
        path = place.find(opening.config)
        check_recorded(named, path, opening)
        overrides = (*_of_the_same_judge(path, opening.overrides, by_caller), *overrides)
    from_environment = [f"{key}={os.environ[name]}" for name, key in _OVERRIDES.items() if os.environ.get(name)]
    everything = (*(one for one in from_environment if one not in overrides), *overrides)
    everything = (*_usual_model(path, everything), *everything)
    loaded = load_config(path, everything)
    if wanted is not None and loaded.profile != wanted:
        raise ConfigError(
            f"{path}: has profile '{loaded.profile}', but '{wanted}' was requested (--profile or RUN_MODE)"
        )
    _check_live_mode(loaded)
    _check_asked_for(loaded, everything)
    _check_code(loaded, place, named, by_caller)
    read = dict(reading or {})
    shown = (*everything, *(f"{key}={file}" for key, file in read.items()))
    _, *others = read_layers(path)  # relative to the file as named: a link's target may be elsewhere
    extended = tuple(layer.path.resolve() for layer in others)
    run = Run(place, _reading(loaded, read), path.resolve(), shown, extended=extended)
    if config is None and path.is_relative_to(place.root):
        check_remembered_addresses(run, by_caller, file=str(path))
    return run


def _of_the_same_judge(path: Path, recorded: Sequence[str], by_caller: Sequence[str]) -> list[str]:
    """Leave out what is recorded of another judge than the caller's: its prices, and a provider's model and address."""
    was = flatten(merged(read_layers(path))) | flatten(dict(map(parsed_override, recorded)))
    now = flatten(dict(map(parsed_override, by_caller)))
    other = [key for key in ("judge.provider", "judge.model") if key in now and now[key] != was.get(key)]
    theirs = ["judge.prices"]
    if "judge.provider" in other:
        before, after = was.get("judge.provider"), now["judge.provider"]
        theirs += ["judge.model"] if before != "rubric" else []
        theirs += [] if _same_address(before, after) else ["judge.base_url"]
    return [one for one in recorded if not (other and one.startswith(tuple(theirs)))]


def _same_address(before: object, after: object) -> bool:
    """Whether an address named next to one provider may serve another one.

    The rubric calls nobody, so an address next to it is that of a server of one's own, which speaks OpenAI's protocol.
    """
    return after in (before, "rubric") or (before, after) == ("rubric", "openai")


def _usual_model(path: Path, overrides: Sequence[str]) -> tuple[str, ...]:
    """Return overrides for another judge than the file's: its usual model and address if nothing names one, no prices.

    Raises:
        ConfigError: for another model of the file's provider, if the file gives prices and no override does.
    """
    values = dict(map(parsed_override, overrides))
    if "judge" in values or not values.keys() & {"judge.provider", "judge.model"}:
        return ()
    written = merged(read_layers(path)).get("judge")
    if not isinstance(written, Mapping):
        return ()  # `load_config` rejects this
    theirs = written.get("provider"), written.get("model")
    provider = values.get("judge.provider", theirs[0])
    model = values.get("judge.model", theirs[1] if provider == theirs[0] else None)
    usual = _USUAL_MODEL.get(str(provider)) if model is None else None
    if (provider, usual or model) == theirs:
        return ()
    priced = any(key.startswith("judge.prices") for key in values)
    if provider == theirs[0] and not priced and any((written.get("prices") or {}).values()):
        raise ConfigError(
            f"judge.model: found {model}, but the prices of {path} are those of {theirs[1]}, and budgets need the "
            f"right ones; name them: --set 'judge.prices={{input: USD, output: USD}}', per million tokens"
        )
    unknown = () if priced else ("judge.prices={input: null, output: null}",)
    kept = _same_address(theirs[0], provider) or "judge.base_url" in values or not written.get("base_url")
    elsewhere = () if kept else ("judge.base_url=null",)
    return (*((f"judge.model={usual}",) if usual else ()), *elsewhere, *unknown)


def _check_live_mode(config: RunConfig) -> None:
    """Check that the configuration agrees with `REWARD_LIVE_MODE`, which requires live scores or the rubric's.

    Raises:
        ConfigError: when it does not, or when live scores are switched off in profile `prod`.
    """
    said = os.environ.get(_LIVE_MODE, "")
    if not said:
        return
    wanted = _SWITCH.get(said.strip().lower())
    if wanted is None:
        raise ConfigError(f"{_LIVE_MODE} is '{said}', expected one of {', '.join(_SWITCH)}")
    if not wanted and config.profile == "prod":
        raise ConfigError(f"{_LIVE_MODE} is off, but profile prod only accepts live scores; unset it, or set it to 1")
    live = config.judge.provider != "rubric"
    if wanted != live:
        what = "requires live scores" if wanted else "requires the local rubric"
        raise ConfigError(
            f"{_LIVE_MODE}={said} {what}, but judge.provider is '{config.judge.provider}' (SCORER_PROVIDER); change one"
        )


def _check_asked_for(config: RunConfig, overrides: Sequence[str]) -> None:
    """Reject the local rubric if a model was named, since its scores would be taken for that model's."""
    keys = {override.partition("=")[0].strip() for override in overrides}
    if config.judge.provider == "rubric" and config.judge.model is not None and "judge.model" in keys:
        raise ConfigError(
            f"judge.model is '{config.judge.model}', but judge.provider is 'rubric', the local rubric, which has no "
            f"model; set SCORER_PROVIDER (or judge.provider) to gemini, openai or deepseek_r1"
        )


def _check_code(config: RunConfig, place: Workspace, path: Path, by_caller: Sequence[str]) -> None:
    """Reject custom code that is in the workspace, or named by a file there, unless the caller names it.

    If the project itself is in the workspace, this does not apply: who can write there can change RC1's code as well.

    Raises:
        ConfigError: names the file, and how the caller can name it.
    """
    own = config.gates.reward_hacking.own
    keys = {override.partition("=")[0].strip() for override in by_caller}
    named = keys & {"gates", "gates.reward_hacking", _OWN_CODE}
    if not own or named or PROJECT_ROOT.is_relative_to(place.root):
        return
    for file in (path, *(place.find(one) for one in own)):
        if any(real.is_relative_to(place.root) for real in (Path(os.path.abspath(file)), file.resolve())):
            raise ConfigError(
                f"{path}: {_OWN_CODE} names code to run ({', '.join(own)}), but {place.name(file)} is in the "
                f"workspace, where no file may start code; name it yourself: --set '{_OWN_CODE}="
                f"[{', '.join(own)}]'"
            )


def _reading(config: RunConfig, files: Mapping[str, str]) -> RunConfig:
    for key, file in files.items():
        section, leaf = key.split(".")
        changed = getattr(config, section).model_copy(update={leaf: file})
        config = config.model_copy(update={section: changed})
    return config


def published_config() -> RunConfig:
    """Return the configuration with RC1's published thresholds, with which reports and tickets compare a run's.

    Raises:
        ConfigError: when the file's thresholds differ from those published with this code.
    """
    path = PROJECT_ROOT / PUBLISHED
    return _published(path, sha256_file(path))


@cache
def _published(path: Path, _sha256: str) -> RunConfig:
    """Parse the file; cached by its bytes, since every report and every check of a ticket needs it."""
    published = load_config(path)
    others = tuple(f"gates.{name}." for name in foreign_gates())
    found = sha256_json({key: value for key, value in decisive(published).items() if not f"{key}.".startswith(others)})
    if found != _PUBLISHED_SHA256:
        raise ConfigError(
            f"{PUBLISHED}: its thresholds differ from those published with this code (found SHA-256 {found}, "
            f"expected {_PUBLISHED_SHA256[:12]}...), so loosened thresholds could not be recognised; restore the "
            f"file, and pass your own settings in another file with --config"
        )
    return published
