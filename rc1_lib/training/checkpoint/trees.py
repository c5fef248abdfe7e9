"""Nested states (optimizer, scheduler, RNG) as named tensors and JSON, and back, without a pickle and without a loss.

JSON knows no tuples, no keys but strings, no integers beyond 64 bits, no NaN. Each of these becomes a mapping with one
key that begins with `%`; everything that JSON can hold stands as it is, so that `state.json` stays readable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

_WIDEST = 2**63


def flatten(tree: Any) -> tuple[dict[str, Tensor], Any]:
    """The tensors of `tree` under dotted names, and the rest as JSON that says where each belongs.

    Args:
        tree: mappings, lists, tuples, tensors, NumPy arrays, numbers, strings, booleans and None, however nested.

    Raises:
        TypeError: for any other leaf: it could not be restored without a pickle.
    """
    tensors: dict[str, Tensor] = {}
    return tensors, _describe(tree, "", tensors)


def unflatten(described: Any, tensors: Mapping[str, Tensor]) -> Any:
    """The tree that `flatten` took apart: the same types, dtypes, keys, and order of lists."""
    if isinstance(described, list):
        return [unflatten(part, tensors) for part in described]
    if not isinstance(described, dict):
        return described
    if len(described) == 1:
        [(tag, inner)] = described.items()
        if tag.startswith("%"):
            return _restore(tag, inner, tensors)
    return {key: unflatten(part, tensors) for key, part in described.items()}


def _describe(tree: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    if isinstance(tree, Tensor):
        return {"%tensor": _keep(tree, path, tensors)}
    if isinstance(tree, np.ndarray):
        return {"%array": _keep(torch.from_numpy(tree.copy()), path, tensors)}
    if isinstance(tree, Mapping):
        return _mapping(tree, path, tensors)
    if isinstance(tree, tuple):
        return {"%tuple": [_describe(part, _join(path, i), tensors) for i, part in enumerate(tree)]}
    if isinstance(tree, list):
        return [_describe(part, _join(path, i), tensors) for i, part in enumerate(tree)]
    return _scalar(tree, path)


def _mapping(tree: Mapping[Any, Any], path: str, tensors: dict[str, Tensor]) -> Any:
    parts = [(key, _describe(part, _join(path, key), tensors)) for key, part in tree.items()]
    if all(isinstance(key, str) and not key.startswith("%") for key, _ in parts):
        return dict(parts)
    return {"%mapping": [[_scalar(key, path), part] for key, part in parts]}


def _scalar(leaf: Any, path: str) -> Any:
    """A leaf as JSON. NumPy's own scalars become Python's: nothing that is saved here depends on the difference."""
    if isinstance(leaf, np.generic):
        leaf = leaf.item()
    if leaf is None or isinstance(leaf, bool | str):
        return leaf
    if isinstance(leaf, int):
        return leaf if -_WIDEST <= leaf < _WIDEST else {"%int": hex(leaf)}
    if isinstance(leaf, float):
        return leaf if math.isfinite(leaf) else {"%float": repr(leaf)}
    raise TypeError(f"{path or 'the state'} is a {type(leaf).__name__}, which cannot be saved without a pickle")


def _restore(tag: str, inner: Any, tensors: Mapping[str, Tensor]) -> Any:
    match tag:
        case "%tensor":
            return tensors[inner]
        case "%array":
            return tensors[inner].numpy().copy()
        case "%tuple":
            return tuple(unflatten(part, tensors) for part in inner)
        case "%mapping":
            return {unflatten(key, tensors): unflatten(part, tensors) for key, part in inner}
        case "%int":
            return int(inner, 16)
        case "%float":
            return float(inner)
    raise AssertionError(f"unknown mark {tag}")


def _keep(tensor: Tensor, path: str, tensors: dict[str, Tensor]) -> str:
    name = path or "value"
    while name in tensors:  # the keys 1 and "1", or "a.b" and a nested b, meet in one dotted name
        name += "_"
    tensors[name] = tensor
    return name


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)
