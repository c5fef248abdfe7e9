"""`docs/reference/configuration.md`: every key of every configuration file, from the models that read them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from rc1_lib.cli.reference.values import accepted, given, sections_in, shown
from rc1_lib.config.file import merged, read_layers
from rc1_lib.config.run_config import RunConfig
from rc1_lib.run import CONFIG_OF_PROFILE, ENVIRONMENT
from rc1_lib.scoring.prompt import JudgeSpec
from rc1_lib.training.embedded.recipe import Recipe
from rc1_lib.training.train_config import TrainConfig
from rc1_lib.workspace.artifacts import PROJECT_ROOT

HEAD = """# Configuration keys

Written by `rc1 dev reference --write` from the models that read the files; a test compares.

An unknown key, a key written twice, infinity and NaN are refused. `--set a.b=c` overrides any key of a run's file, with
values in YAML syntax; a command's own flags win over it. `rc1 config show` prints what is in force, `rc1 config verify`
checks it. In a key, `*` stands for each name and `[]` for each entry of a list. A file whose key `extends` names
another one in the same folder holds only what differs from that; sections are merged key by key, lists are replaced as
a whole. `configs/ppo_scale.yaml` holds every key: `configs/local.yaml` extends it, and each engine's file extends that.
"""


@dataclass(frozen=True, slots=True)
class Key:
    """One key: where it stands, what it takes, its default where it has one, and what it is."""

    path: tuple[str, ...]
    takes: str
    what: str


@dataclass(frozen=True, slots=True)
class Part:
    """One section of a file, with the keys that stand directly in it."""

    path: tuple[str, ...]
    what: str
    keys: tuple[Key, ...]

    @property
    def title(self) -> str:
        """Where it stands; of several kinds of entry in one place, also by which name."""
        names = [key.takes for key in self.keys if self.path and self.path[-1] == "[]" and key.path[-1] == "name"]
        return ": ".join([f"`{_dotted(self.path)}`", *names])


@dataclass(frozen=True, slots=True)
class Document:
    """One kind of configuration file, and the shipped ones of its kind."""

    title: str
    text: str
    model: type[BaseModel]
    files: Mapping[str, str]


DOCUMENTS = (
    Document(
        "A run",
        "The file of a profile, or the one that `--config` names. A profile's key in bold differs from `local`'s.",
        RunConfig,
        CONFIG_OF_PROFILE,
    ),
    Document(
        "The small local configuration",
        "`rc1 train --config configs/train_local.yaml`: supervised training on rows of input and output.",
        TrainConfig,
        {"shipped": "configs/train_local.yaml"},
    ),
    Document(
        "The embedded base",
        "`rc1 build-base` makes the committed model by this recipe. It takes no `--set`.",
        Recipe,
        {"shipped": "configs/base.yaml"},
    ),
    Document(
        "The judge's instructions",
        "`configs/judge/<judge.spec>.yaml`. A change of any word is another judge: stored scores no longer count.",
        JudgeSpec,
        {"shipped": "configs/judge/v1.yaml"},
    ),
)


def configuration_page() -> str:
    """The whole page."""
    pieces = [HEAD, _environment()]
    for document in DOCUMENTS:
        trees = {name: merged(read_layers(PROJECT_ROOT / file)) for name, file in document.files.items()}
        pieces.append(f"## {document.title}\n\n{document.text}\n")
        pieces += [_section(part, trees) for part in parts(document.model)]
    return "\n".join(pieces)


def parts(model: type[BaseModel], path: tuple[str, ...] = (), what: str = "") -> Iterator[Part]:
    """The sections of a model, from the top, each before those that it holds."""
    words = attribute_docstrings(model)
    keys, inner = [], []
    for name, field in model.model_fields.items():
        steps, sections = sections_in(field.annotation)
        place = (*path, name)
        if sections:
            inner += [(section, (*place, *steps), words.get(name, "")) for section in sections]
            continue
        takes = field.description or accepted(field.annotation, field.metadata)
        default = "" if field.is_required() else f"; default `{shown(field.default)}`"
        keys.append(Key(place, takes + default, words.get(name, "")))
    own = inspect.cleandoc(model.__doc__ or "").replace("\n", " ")
    yield Part(path, " ".join(filter(None, (own, what))), tuple(keys))
    for section, place, words_of_field in inner:
        yield from parts(section, place, words_of_field)


@cache
def attribute_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Field -> the string that stands below it in the model's source, on one line.

    pydantic can gather them itself, but reads every model's source at each start of the program to do so.
    """
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if base is BaseModel or not issubclass(base, BaseModel):
            continue
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(body, ast.ClassDef)
        for field, below in zip(body.body, body.body[1:], strict=False):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str() as text)),
                ):
                    found[name] = " ".join(text.split())
    return found


def _environment() -> str:
    lines = ["## The environment", "", "| variable | what |", "|---|---|"]
    lines += [f"| `{name}` | {what} |" for name, what in ENVIRONMENT.items()]
    return "\n".join([*lines, ""])


def _section(part: Part, trees: Mapping[str, Any]) -> str:
    lines = [f"### {part.title}", ""] if part.path else []
    lines += [part.what, ""]
    if part.keys:
        columns = ["key", "takes", *trees, "what"]
        lines += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
        lines += [_row(key, trees) for key in part.keys]
        lines.append("")
    return "\n".join(lines)


def _row(key: Key, trees: Mapping[str, Any]) -> str:
    values = []
    for tree in trees.values():
        try:
            values.append(f"`{given(tree, key.path)}`")
        except KeyError:
            values.append("")
    cells = [values[0], *(value if value == values[0] else f"**{value}**" for value in values[1:])]
    return "| " + " | ".join(_cell(text) for text in (f"`{_dotted(key.path)}`", key.takes, *cells, key.what)) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(path).replace(".[]", "[]")
