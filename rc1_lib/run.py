"""One run: its workspace, its configuration and where that came from."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rc1_lib.config.addresses import VLLM_KEY
from rc1_lib.config.file import decisive, decisive_of_growth, dump_config, load_config, read_layers
from rc1_lib.config.recorded_opening import check_recorded, head, opening_of
from rc1_lib.config.run_config import RunConfig
from rc1_lib.errors import ConfigError
from rc1_lib.masking import secrets
from rc1_lib.workspace.artifacts import PROJECT_ROOT, Workspace, default_root, sha256_json, write_text
from rc1_lib.workspace.file_hashes import sha256_file

CONFIG_OF_PROFILE = {"local": "configs/local.yaml", "prod": "configs/ppo_scale.yaml"}
PUBLISHED = "configs/ppo_scale.yaml"
_PUBLISHED_SHA256 = "37b634cfa2312fd2a85e930dc024f0c1e6bb98236f877715a66806b9e4aef606"
"""Of all in it that decides what a green gate means: part of the code, so that no edit of the file alone hides one."""
EFFECTIVE = "reports/config_effective.yaml"
OF_TIME_ALONE = ("pool.workers", "training.processes")
"""Keys of the configuration that say how many work, and so how long it takes: no byte hangs on them."""

_OVERRIDES = {"BASE_MODEL": "base_model", "SCORER_PROVIDER": "judge.provider", "SCORER_BASE_URL": "judge.base_url"}
_LIVE_MODE = "REWARD_LIVE_MODE"
TICKET_KEY = "RC1_TICKET_KEY"
ENVIRONMENT = {
    "RUN_MODE": "the profile, `local` or `prod`, where `--profile` gives none",
    **{name: f"overrides `{key}`; `--set` wins over it" for name, key in _OVERRIDES.items()},
    "BASE_MODEL": "overrides `base_model`, in the small configuration `model.base`; `--set` wins over it",
    "SCORER_API_KEY": "the judge's key (or the Prefect secret `rc1-scorer-api-key`); never read from a file",
    VLLM_KEY: "the key of the vLLM server of `training.vllm`, where it asks for one; never read from a file",
    TICKET_KEY: "a key (ed25519, PEM) outside the workspace: tickets are signed by it, and others open nothing",
    _LIVE_MODE: "`1`: the judge has to be live, `0`: the rubric (refused in `prod`); the file has to agree",
}
"""Variables that decide something of a run -> what."""
_SWITCH = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}


@dataclass(frozen=True, slots=True)
class Run:
    """What a run is, as every step is handed it.

    Attributes:
        workspace: where everything is written.
        config: the effective configuration.
        config_path: the file it came from.
        overrides: what was applied to it.
        vouched: name -> SHA-256 of what a verified ticket vouches for; None where no ticket was asked for.
        extended: the files that `config_path` extends, from the nearest on; none where it stands by itself.
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
        """SHA-256 of all in the effective configuration but what is a matter of time alone."""
        return sha256_json(without_time(self.config.model_dump(mode="json")))

    def write_effective_config(self) -> Path:
        """Write the effective configuration into the workspace and return its path."""
        path = self.workspace.path(EFFECTIVE)
        write_text(path, self.effective_config())
        return path

    def effective_config(self) -> str:
        """The effective configuration as YAML, secrets of the environment masked, below how the run was opened."""
        hidden = secrets()
        return head(self.workspace, self.config_path, self.overrides, hidden) + dump_config(self.config, hidden)


def without_time(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration's values, `OF_TIME_ALONE` left out: what makes it another one.

    Args:
        config: section -> its values, as a run's own or as a ticket tells them.
    """
    bare = dict(config)
    for section, leaf in (key.split(".") for key in OF_TIME_ALONE):
        if isinstance(values := bare.get(section), Mapping):
            bare[section] = {key: value for key, value in values.items() if key != leaf}
    return bare


def workspace_at(folder: str | Path | None) -> Workspace:
    """The workspace in a folder; default: as `default_root` says."""
    return Workspace(Path(folder).resolve() if folder else default_root())


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
        profile: `local` or `prod`; default: `RUN_MODE`, else what the file says, else `local`.
        config: the file; default: the profile's own. The workspace's own `reports/config_effective.yaml` opens the run
            that it records: by that run's file and overrides.
        overrides: `a.b=c`, applied after those of the environment (`BASE_MODEL`, `SCORER_PROVIDER`, `SCORER_BASE_URL`).
        workspace: where everything is written; default: as `default_root` says.
        reading: `section.key` -> a file that this run only reads in the place of one that RC1 writes; it may lie
            anywhere and have any name.

    Raises:
        ConfigError: for an unknown profile, a file of another profile, an invalid configuration, or an effective one
            that says something else than what it records.
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
    if path.resolve() == place.path(EFFECTIVE).resolve() and (opening := opening_of(path)) is not None:
        recorded, path = path, place.find(opening.config)
        check_recorded(recorded, path, opening)
        overrides = (*opening.overrides, *overrides)
    from_environment = [f"{key}={os.environ[name]}" for name, key in _OVERRIDES.items() if os.environ.get(name)]
    everything = (*(one for one in from_environment if one not in overrides), *overrides)
    loaded = load_config(path, everything)
    if wanted is not None and loaded.profile != wanted:
        raise ConfigError(
            f"{path}: is of profile '{loaded.profile}', but '{wanted}' was asked for (--profile or RUN_MODE)"
        )
    _check_live_mode(loaded)
    _check_asked_for(loaded, everything)
    read = dict(reading or {})
    shown = (*everything, *(f"{key}={file}" for key, file in read.items()))
    _, *others = read_layers(path)  # in the folder of the file as it was named: a link's target may lie elsewhere
    extended = tuple(layer.path.resolve() for layer in others)
    return Run(place, _reading(loaded, read), path.resolve(), shown, extended=extended)


def _check_live_mode(config: RunConfig) -> None:
    """`REWARD_LIVE_MODE` says whether scores have to be live or come from the rubric; the configuration has to agree.

    Raises:
        ConfigError: when it does not, or when it is off in profile `prod`.
    """
    said = os.environ.get(_LIVE_MODE, "")
    if not said:
        return
    wanted = _SWITCH.get(said.strip().lower())
    if wanted is None:
        raise ConfigError(f"{_LIVE_MODE} is '{said}', expected one of {', '.join(_SWITCH)}")
    if not wanted and config.profile == "prod":
        raise ConfigError(f"{_LIVE_MODE} is off, but profile prod takes live scores only; unset it, or set it to 1")
    live = config.judge.provider != "rubric"
    if wanted != live:
        what = "asks for live scores" if wanted else "asks for the local rubric"
        raise ConfigError(
            f"{_LIVE_MODE}={said} {what}, but judge.provider is '{config.judge.provider}' (SCORER_PROVIDER); change one"
        )


def _check_asked_for(config: RunConfig, overrides: Sequence[str]) -> None:
    """Refuse to let the local rubric answer where a model was named: its scores would pass for that model's."""
    keys = {override.partition("=")[0].strip() for override in overrides}
    if config.judge.provider == "rubric" and config.judge.model is not None and "judge.model" in keys:
        raise ConfigError(
            f"judge.model is '{config.judge.model}', but judge.provider is 'rubric', the local rubric, which has no "
            f"model; nothing was asked. Set SCORER_PROVIDER (or judge.provider) to gemini, openai or deepseek_r1"
        )


def _reading(config: RunConfig, files: Mapping[str, str]) -> RunConfig:
    for key, file in files.items():
        section, leaf = key.split(".")
        changed = getattr(config, section).model_copy(update={leaf: file})
        config = config.model_copy(update={section: changed})
    return config


def published_config() -> RunConfig:
    """The configuration with RC1's published thresholds, by which reports and tickets name what was loosened.

    Raises:
        ConfigError: when the file has other thresholds than those that were published with this code.
    """
    path = PROJECT_ROOT / PUBLISHED
    return _published(path, sha256_file(path))


@cache
def _published(path: Path, _sha256: str) -> RunConfig:
    """What the file says while it has these bytes: every report and every look at a ticket asks."""
    published = load_config(path)
    found = sha256_json(decisive(published) | decisive_of_growth(published))
    if found != _PUBLISHED_SHA256:
        raise ConfigError(
            f"{PUBLISHED}: its thresholds are not those that were published with this code (found SHA-256 "
            f"{found}, expected {_PUBLISHED_SHA256[:12]}...), so nothing could be said to be loosened against them; "
            f"put the file back, and give yours as another one with --config"
        )
    return published
