"""Read configuration files and overrides; errors name the key, what was found and what to write."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from rc1_lib.config.foreign_gates import GROUP, foreign_gates
from rc1_lib.config.run_config import RunConfig
from rc1_lib.config.strict_yaml import fault_line, parse_yaml
from rc1_lib.errors import ConfigError
from rc1_lib.masking import conceal, conceal_argument, holds_credentials, mask_tree, secrets
from rc1_lib.workspace.input_files import read_text

Model = TypeVar("Model", bound=BaseModel)

EXTENDS = "extends"
"""The key by which a file extends another one in the same folder and states only the differences."""
_LARGEST = 1_000_000
"""Maximum bytes of a configuration file; the shipped ones have about 20,000."""
_LARGEST_INT = 2**63
_EXAMPLE = "pool.n=600"
_NOT_THERE = object()
_PUBLISHED_ROWS = range(20_000, 40_001)
"""Sizes of the pool that the specification allows."""
_FREE = (
    # what the ticket records itself, or pins by its bytes
    "profile", "base_model", "sources.use", "sources.hub", "sources.columns", "judge.provider", "judge.model",
    "judge.base_url",
    # where files lie
    "seed_pool", "weights", "pool.path", "shadow.path", "difficulty.metrics_path", "difficulty.balanced_path",
    "judge.labels.path",
    # speed and cost
    "pool.workers", "judge.prices", "judge.ask_above_usd", "judge.limits", "judge.budget",
    "training.threads", "training.shards", "training.processes", "training.gradient_checkpointing", "training.vllm",
    "training.checkpoints", "training.cap", "training.segment_steps", "training.tracking",
    # how the policy learns, which only the gate `training_config` checks in a preflight
    "priority_sampling", "target_kl", "steps", "seeds", "lr", "clip", "kl_coef", "batch_size", "rollout_len",
    "finetune", "training.engine", "training.strategy", "training.describe_tools",
    "training.adapter", "training.update", "training.ppo", "training.grpo",
    "training.rollout.thought_tokens", "training.rollout.rows",
    "training.rollout.sampler",
    "training.early_stop", "training.eval_shadow",
)  # fmt: skip
"""Settings and sections that may differ from the published ones without changing what a gate means. Reports list
differences of all others. `training.warm_start` and `training.rollout.temperature` are not free: the gate `ppo_eval`
compares with the initial policy, which both can make worse."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One file of a configuration, with only its own content."""

    path: Path
    tree: dict[str, Any]


def load_config(path: Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a run's configuration, above the thresholds that gates of other packages publish; see `read_model`."""
    return read_model(RunConfig, path, overrides, _EXAMPLE, _published_elsewhere())


def _published_elsewhere() -> list[Layer]:
    return [
        Layer(gate.file, {"gates": {name: gate.thresholds.model_dump(mode="json")}})
        for name, gate in foreign_gates().items()
    ]


def read_model(
    kind: type[Model], path: Path, overrides: Sequence[str], example: str, below: Sequence[Layer] = ()
) -> Model:
    """Read `path`, apply dotted overrides (`a.b=c`, values in YAML syntax) and validate.

    Args:
        kind: the model that the file must fit.
        overrides: applied in order.
        example: a valid override, for error messages.
        below: layers with values for what no file states.

    Raises:
        ConfigError: names the file and the key, what was found and what is expected.
    """
    layers = (*read_layers(path), *below)
    tree = merged(layers)
    for override in overrides:
        _apply(tree, override, example)
    _reject_credentials(tree, layers, overrides)
    try:
        model = kind.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(_explain(kind, layers, overrides, error)) from None
    for where, number in _too_large(tree, ""):
        raise ConfigError(
            f"{_origin_of(where, layers, overrides)}: {where}: found {number:.3g}, expected a number below "
            f"{_LARGEST_INT:.3g}"
        )
    for where, value in _reject_boolean(tree, model.model_dump(), ""):
        raise ConfigError(
            f"{_origin_of(where, layers, overrides)}: {where}: found {str(value).lower()}, expected a number or text"
        )
    return model


def read_layers(path: Path) -> tuple[Layer, ...]:
    """Read a YAML file, the file that it extends, and so on, up to one that extends no other.

    Raises:
        ConfigError: as in `read_yaml`; also when `extends` is not the name of another file in the same folder, when
            that file is missing, or when a file extends itself through others.
    """
    layers = [Layer(path, read_yaml(path))]
    while EXTENDS in layers[-1].tree:
        base = _base_of(layers[-1])
        if base in (layer.path for layer in layers):
            chain = ", ".join(layer.path.name for layer in layers)
            raise ConfigError(
                f"{layers[-1].path}: {EXTENDS}: {base.name} extends this file in turn ({chain}), expected a chain of "
                f"files that ends with one without {EXTENDS}"
            )
        layers.append(Layer(base, read_yaml(base)))
    return tuple(layers)


def merged(layers: Sequence[Layer]) -> dict[str, Any]:
    """Merge the values of `layers`; earlier layers override later ones, and lists are replaced as a whole."""
    tree: dict[str, Any] = {}
    for layer in reversed(layers):
        tree = _overridden({key: value for key, value in layer.tree.items() if key != EXTENDS}, tree)
    return tree


def _base_of(layer: Layer) -> Path:
    name = layer.tree[EXTENDS]
    if not isinstance(name, str) or Path(name).name != name or name == layer.path.name:
        raise ConfigError(
            f"{layer.path}: {EXTENDS}: found {name!r}, expected the name of another file in the same folder, for "
            f"example local.yaml"
        )
    base = layer.path.with_name(name)
    if not base.exists():
        raise ConfigError(
            f"{layer.path}: {EXTENDS}: {name} is not in the same folder; copy it there, or name a file that is"
        )
    return base


def _overridden(values: Mapping[str, Any], below: Mapping[str, Any]) -> dict[str, Any]:
    """Return `below` overridden with `values`; the result shares no mapping with either, so it may be changed."""
    laid = dict(below)
    for key, value in values.items():
        there = laid.get(key)
        laid[key] = (
            _overridden(value, there if isinstance(there, Mapping) else {}) if isinstance(value, Mapping) else value
        )
    return laid


def _too_large(tree: Any, where: str) -> Iterator[tuple[str, Decimal]]:
    """Yield integers of more than 64 bits, which reports cannot store."""
    if isinstance(tree, Mapping | list):
        for key, value in tree.items() if isinstance(tree, Mapping) else enumerate(tree):
            yield from _too_large(value, f"{where}.{key}" if where else str(key))
    elif isinstance(tree, int) and abs(tree) >= _LARGEST_INT:
        yield where, Decimal(tree)


def _reject_boolean(written: Any, read: Any, where: str) -> Iterator[tuple[str, bool]]:
    """Yield booleans where another type is expected, since Python would accept `true` as the number 1."""
    if isinstance(written, bool) and not isinstance(read, bool):
        yield where, written
    elif isinstance(written, Mapping) and isinstance(read, Mapping):
        for key, value in written.items():
            yield from _reject_boolean(value, read.get(key), f"{where}.{key}" if where else str(key))
    elif isinstance(written, list) and isinstance(read, list | tuple):
        for place, (value, one) in enumerate(zip(written, read, strict=False)):
            yield from _reject_boolean(value, one, f"{where}.{place}")


def _reject_credentials(tree: Mapping[str, Any], layers: Sequence[Layer], overrides: Sequence[str]) -> None:
    """Reject secrets: the configuration is copied to reports, to the ticket and to Prefect's database."""
    for key, value in flatten(tree).items():
        if any(
            isinstance(one, str) and holds_credentials(one) for one in (value if isinstance(value, list) else [value])
        ):
            raise ConfigError(
                f"{_origin_of(key, layers, overrides)}: {key}: the address contains credentials; remove them, and put "
                f"a judge's key into SCORER_API_KEY or a vLLM server's into RC1_VLLM_API_KEY"
            )


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping, or raise an error that says why it cannot be read."""
    try:
        tree = parse_yaml(read_text(path, _LARGEST))
    except FileNotFoundError:
        raise ConfigError(f"{path}: configuration file not found; name one with --config") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); expected a YAML file") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: cannot be read as UTF-8 text ({error})") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}:{fault_line(error)} is not valid YAML: {getattr(error, 'problem', error)}") from None
    except ValueError as error:  # a date such as 2025-13-45
        raise ConfigError(f"{path}: has a value that YAML cannot read: {error}") from None
    if not isinstance(tree, dict):
        raise ConfigError(f"{path}: expected a mapping of keys to values, found {type(tree).__name__}")
    return tree


def dump_config(config: RunConfig, hidden: Sequence[str] = ()) -> str:
    """Return the effective configuration as YAML with all keys; `hidden` texts are masked (see `masking.secrets`)."""
    tree = mask_tree(config.model_dump(mode="json"), hidden)
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return dotted key -> leaf value."""
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            leaves |= flatten(value, f"{prefix}{key}.")
        else:
            leaves[f"{prefix}{key}"] = value
    return leaves


def departures(config: RunConfig, published: RunConfig) -> list[dict[str, Any]]:
    """Return where `config` differs from the published one, so that a loosened gate is visible.

    Waivers are excluded, since reports list them separately, and so is a pool size within the published range, which
    is also the last of `scale_up.sizes`.
    """
    ours, theirs = decisive(config), decisive(published)
    if config.pool.n in _PUBLISHED_ROWS:
        ours["pool.n"] = theirs["pool.n"]
    if ours["scale_up.sizes"][:-1] == theirs["scale_up.sizes"][:-1]:
        ours["scale_up.sizes"] = theirs["scale_up.sizes"]
    return [
        {"key": key, "value": ours.get(key), "published": theirs.get(key)}
        for key in sorted({**ours, **theirs})
        if ours.get(key) != theirs.get(key) and not key.startswith("gates.waivers")
    ]


def decisive(config: RunConfig) -> dict[str, Any]:
    """Return dotted key -> value of every setting that affects what a passed gate means: all but `_FREE`."""
    leaves = flatten(config.model_dump(mode="json"))
    return {key: value for key, value in leaves.items() if not any(f"{key}.".startswith(f"{one}.") for one in _FREE)}


def parsed_override(override: str, example: str = _EXAMPLE) -> tuple[str, Any]:
    """Return the dotted key of `a.b=c`, and its value read as YAML, or raise an error that says what is wrong."""
    key, text = _split(override)
    if not key or text is None:
        raise _override_error(override, f"expected KEY=VALUE with a dotted key, for example --set {example}")
    try:
        return key, parse_yaml(text)
    except (yaml.YAMLError, ValueError):
        raise _override_error(override, "the value is not valid YAML") from None


def _apply(tree: dict[str, Any], override: str, example: str) -> None:
    key, value = parsed_override(override, example)
    *parents, leaf = key.split(".")
    node: Any = tree
    for depth, parent in enumerate(parents, start=1):
        if parent not in node:
            raise _override_error(override, f"unknown section '{parent}'{_nearest(parent, list(node))}")
        node = node[parent]
        if not isinstance(node, dict):
            whole = ".".join(parents[:depth])
            raise _override_error(
                override, f"'{parent}' is a value, not a section with keys; set all of it: {whole}=..."
            )
    node[leaf] = value


def _override_error(override: str, problem: str) -> ConfigError:
    return ConfigError(f"--set {conceal_argument(override, secrets())}: {problem}")


def _split(override: str) -> tuple[str, str | None]:
    """Return the dotted key of `a.b=c` and the text of its value, None without `=`."""
    key, separator, text = override.partition("=")
    return key.strip(), text if separator else None


def _explain(kind: type[BaseModel], layers: Sequence[Layer], overrides: Sequence[str], error: ValidationError) -> str:
    """Return the errors, grouped by origin: a file or the command line."""
    problems: dict[str, list[str]] = {}
    hidden = secrets()
    for item in error.errors():
        where = ".".join(str(part) for part in item["loc"] if part != "[key]") or "(top level)"
        found = repr(conceal(str(item["input"]), hidden)[:80])
        if item["type"] == "extra_forbidden":
            *parents, leaf = item["loc"]
            known = _known_keys(kind, parents)
            problem = f"unknown key '{where}'{_nearest(str(leaf), known)}"
            if parents == ["gates"]:
                problem += f"; a gate of another package needs that package, with an entry point {GROUP}"
        elif item["type"] == "missing":
            problem = f"the key '{where}' is missing"
        elif item["type"] == "value_error":
            problem = f"{where}: {item['ctx']['error']}" if item["loc"] else str(item["ctx"]["error"])
        elif item["type"] in ("tuple_type", "list_type"):
            problem = f"{where}: found {found}, expected a list"
        elif item["type"] == "union_tag_invalid":
            problem = f"{where}: found '{item['ctx']['tag']}', expected one of {item['ctx']['expected_tags']}"
        else:
            problem = f"{where}: found {found}, expected: {item['msg']}"
        problems.setdefault(_origin_of(where, layers, overrides), []).append(problem)
    return "; ".join(f"{place}: {'; '.join(shown)}" for place, shown in problems.items())


def _origin_of(where: str, layers: Sequence[Layer], overrides: Sequence[str]) -> str:
    """Return the file that sets the key `where`; for a section or a missing key, all files that may be at fault."""
    keys = [_split(override)[0] for override in overrides]
    ours = any(where == key or where.startswith(f"{key}.") for key in keys)
    first, *others = _setting_files(where.split("."), layers)
    said = " over ".join([str(first), *(path.name for path in others)])
    return f"{layers[0].path}, changed on the command line" if ours else said


def _setting_files(steps: Sequence[str], layers: Sequence[Layer]) -> list[Path]:
    found = []
    for layer in layers:
        value: Any = layer.tree
        for step in steps:
            if isinstance(value, Mapping):
                value = value.get(step, _NOT_THERE)
        if isinstance(value, Mapping):
            found.append(layer.path)
        elif value is not _NOT_THERE:
            return [*found, layer.path]
    return found or [layer.path for layer in layers]


def _known_keys(kind: type[BaseModel], parents: Sequence[str | int]) -> list[str]:
    """Return the field names of the section of `kind` at `parents`."""
    model: Any = kind
    for parent in parents:
        annotation = model.model_fields[str(parent)].annotation if str(parent) in model.model_fields else None
        inner = [annotation, *getattr(annotation, "__args__", ())]
        model = next((one for one in inner if isinstance(one, type) and issubclass(one, BaseModel)), None)
        if model is None:
            return []
    return list(model.model_fields)


def _nearest(key: str, known: Sequence[str]) -> str:
    match = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    return f"; did you mean '{match[0]}'?" if match else (f"; known: {', '.join(known)}" if known else "")
