"""Strict YAML: only plain values, no repeated keys, no aliases, and limited nesting."""

from __future__ import annotations

import pickle
from collections.abc import Hashable
from functools import lru_cache
from typing import Any

import yaml

_DEEPEST = 100
"""Levels of nesting. The C parser has no limit: it crashes the process when the stack overflows."""

# The C parser is twenty times as fast, but PyYAML has it only if built with libyaml.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _UniqueKeys(_Loader):  # type: ignore[misc]
    """A safe loader that rejects repeated keys; YAML would silently keep the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            key = self.construct_object(key_node, deep=True)
            fault = "is written twice" if isinstance(key, Hashable) and key in seen else ""
            if not isinstance(key, Hashable):
                fault = "is a list or a mapping, expected a plain name"
            if fault:
                raise yaml.constructor.ConstructorError(None, None, f"the key '{key}' {fault}", key_node.start_mark)
            seen.add(key)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping


def parse_yaml(text: str) -> Any:
    """Return the content of a YAML document; None if it is empty.

    Raises:
        yaml.YAMLError: when it is not strict YAML; `problem` says why, `problem_mark` where.
        ValueError: for a value that YAML cannot read, such as the date 2025-13-45.
    """
    return pickle.loads(_parsed(text))


@lru_cache(maxsize=256)
def _parsed(text: str) -> bytes:
    """Parse a text once, since the same few files are opened several times; each caller unpickles its own copy."""
    _reject_aliases_and_depth(text)
    return pickle.dumps(yaml.load(text, Loader=_UniqueKeys), pickle.HIGHEST_PROTOCOL)


def _reject_aliases_and_depth(text: str) -> None:
    """Reject deep nesting, and aliases, since a few lines of nested aliases can expand beyond any memory."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        fault = f"nested deeper than {_DEEPEST} levels" if depth > _DEEPEST else ""
        if isinstance(event, yaml.AliasEvent):
            fault = f"found the alias '*{event.anchor}', expected the value itself"
        if fault:
            mark: Any = event.start_mark
            raise yaml.composer.ComposerError(None, None, fault, mark)


def fault_line(error: yaml.YAMLError) -> str:
    """Return the line of the error, as ` line 3`, or "" if it is unknown."""
    mark = getattr(error, "problem_mark", None)
    return f" line {mark.line + 1}" if mark else ""
