"""The pages of docs/reference: every command by typer's own generator, every key from the models that read it."""

from __future__ import annotations

import ast
import html
import inspect
import json
import textwrap
import types
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import typer
from pydantic import BaseModel, TypeAdapter
from typer.cli import get_docs_for_click

from rc1_lib.config.file import merged, read_layers
from rc1_lib.config.run_config import RunConfig
from rc1_lib.extras.base_builder.recipe import Recipe
from rc1_lib.judge.prompt import JudgeSpec
from rc1_lib.run import CONFIG_OF_PROFILE, ENVIRONMENT
from rc1_lib.training.train_config import TrainConfig
from rc1_lib.workspace.artifacts import PROJECT_ROOT

FOLDER = "docs/reference"
_WRITTEN = "Written by `rc1 dev reference --write`; a test compares. Dashes and underscores are the same in names."


def pages(app: typer.Typer) -> dict[str, str]:
    """Return file name -> the page as the code gives it now."""
    return {"configuration.md": configuration_page(), "commands.md": commands_page(app)}


def commands_page(app: typer.Typer) -> str:
    """List every command as `typer rc1_lib.cli.app utils docs` does."""
    program = typer.main.get_command(app)
    context = typer.Context(program, info_name="rc1")
    text = get_docs_for_click(obj=program, ctx=context, name="rc1", title="Commands")
    head = "# Commands\n\n"
    return html.unescape(text).replace(head, f"{head}{_WRITTEN}\n\n", 1).rstrip() + "\n"


HEAD = """# Configuration keys

Written by `rc1 dev reference --write` from the models that read the files; a test compares.

An unknown key, a key written twice, infinity and NaN are refused. `--set a.b=c` overrides any key of a run's file, with
values in YAML syntax; a command's own flags win over it. `rc1 config show` prints what is in force, `rc1 config verify`
checks it. In a key, `*` stands for each name and `[]` for each entry of a list. A file whose key `extends` names
another one in the same folder holds only what differs from that; sections are merged key by key, lists are replaced as
a whole. `configs/ppo_scale.yaml` holds every key: `configs/local.yaml` extends it, and each engine's file extends that.
"""


class Key(NamedTuple):
    """One key: its path, what it takes, its default if it has one, and what it is."""

    path: tuple[str, ...]
    takes: str
    what: str


class Part(NamedTuple):
    """One section of a file, with its own keys."""

    path: tuple[str, ...]
    what: str
    keys: tuple[Key, ...]


class Document(NamedTuple):
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
    pieces = [HEAD, "## The environment\n\n| variable | what |\n|---|---|"]
    pieces += [f"| `{name}` | {what} |" for name, what in ENVIRONMENT.items()]
    for document in DOCUMENTS:
        trees = {name: merged(read_layers(PROJECT_ROOT / file)) for name, file in document.files.items()}
        pieces += [f"\n## {document.title}\n\n{document.text}"]
        pieces += [line for part in parts(document.model) for line in _section(part, trees)]
    return "\n".join([*pieces, ""])


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
        takes = field.description or accepted(Annotated[field.annotation, *field.metadata, None])
        default = "" if field.is_required() else f"; default `{shown(field.default)}`"
        keys.append(Key(place, takes + default, words.get(name, "")))
    own = inspect.cleandoc(model.__doc__ or "").replace("\n", " ")
    yield Part(path, " ".join(filter(None, (own, what))), tuple(keys))
    for section, place, words_of_field in inner:
        yield from parts(section, place, words_of_field)


@cache
def attribute_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Return field -> the string below it in the model's source, on one line.

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


def _section(part: Part, trees: Mapping[str, Any]) -> Iterator[str]:
    if part.path:  # where a place has several kinds of entry, also this one's name
        names = [key.takes for key in part.keys if part.path[-1] == "[]" and key.path[-1] == "name"]
        yield f"\n### {': '.join([f'`{_dotted(part.path)}`', *names])}"
    yield f"\n{part.what}"
    if part.keys:
        columns = ["key", "takes", *trees, "what"]
        yield f"\n| {' | '.join(columns)} |\n{'|---' * len(columns)}|"
    for key in part.keys:
        values: list[str] = []
        for tree in trees.values():
            try:
                value = f"`{given(tree, key.path)}`"
            except KeyError:
                value = ""
            values.append(value if value == [*values, value][0] else f"**{value}**")
        cells = [cell.replace("|", "\\|") for cell in (f"`{_dotted(key.path)}`", key.takes, *values, key.what)]
        yield f"| {' | '.join(cells)} |"


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(path).replace(".[]", "[]")


_PLAIN = {"boolean": "true or false", "integer": "integer", "number": "number", "string": "text", "null": "null"}
_BOUNDS = {
    "minimum": "≥ {}", "exclusiveMinimum": "> {}", "maximum": "≤ {}", "exclusiveMaximum": "< {}",
    "pattern": "like `{}`", "minLength": "of at least {} character{s}", "maxLength": "of at most {}",
}  # fmt: skip
"""Keyword of a JSON schema -> how a bound is said."""
_LONG = 90
"""Longer values are not shown; the page refers to the file."""


def accepted(kind: Any) -> str:
    """What a key of this type takes: `integer ≥ 1`, `list of text`, `text or null`.

    An alias that says what it stands for (`Field(description=...)`) is taken at its word.
    """
    return _in_words(TypeAdapter(kind).json_schema())


def _in_words(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"description": words}:
            return str(words)
        case {"anyOf": kinds}:
            return _alternatives([_in_words(kind) for kind in kinds])
        case {"enum": choices}:
            return _alternatives([f"`{shown(choice)}`" for choice in choices])
        case {"const": choice}:
            return f"`{shown(choice)}`"
        case {"prefixItems": kinds}:
            return f"[{', '.join(map(_in_words, kinds))}]"
        case {"items": kind}:
            return f"list of {_in_words(kind)}{' (at least one)' if 'minItems' in schema else ''}"
        case {"patternProperties": kinds}:
            return ", ".join(f"text like `{names}`: {_in_words(kind)}" for names, kind in kinds.items())
        case {"additionalProperties": kind}:
            return f"{_in_words(schema.get('propertyNames', {'type': 'string'}))}: {_in_words(kind)}"
    bounds = [
        words.format(shown(bound), s="" if bound == 1 else "s")
        for name, words in _BOUNDS.items()
        if (bound := schema.get(name)) is not None
    ]
    return " ".join(filter(None, (_PLAIN[schema["type"]], ", ".join(bounds))))


def _alternatives(texts: Sequence[str]) -> str:
    """`a, b or c`; with a comma before `or` where the parts have commas of their own."""
    comma = "," if any("," in text for text in texts) else ""
    return f"{', '.join(texts[:-1])}{comma} or {texts[-1]}"


def shown(value: Any) -> str:
    """A value as one may write it in the file, on one line."""
    if isinstance(value, str):
        return value
    if value == 2**63:
        return "2^63"
    whole = isinstance(value, float) and value.is_integer()
    return json.dumps(int(value) if whole else value, ensure_ascii=False, default=str).replace('"', "")


def given(tree: Any, path: Sequence[str]) -> str:
    """What a configuration gives the key at `path`; `*` stands for every name, `[]` for every entry of a list.

    Raises:
        KeyError: when it does not name the key.
    """
    text = _given(tree, path)
    return text if len(text) <= _LONG else "see the file"


def _given(tree: Any, path: Sequence[str]) -> str:
    match path:
        case []:
            return shown(tree)
        case ["*", *rest]:
            return ", ".join(f"{name}: {_given(item, rest)}" for name, item in tree.items())
        case ["[]", *rest]:
            return ", ".join(_given(item, rest) for item in tree)
        case [step, *rest] if isinstance(tree, dict):
            return _given(tree[step], rest)
    raise KeyError(path[0])


def sections_in(annotation: Any) -> tuple[tuple[str, ...], list[type[BaseModel]]]:
    """The sections that a key holds, and the steps that lead to them: `*` by name, `[]` in a list."""
    origin, args = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return (), [annotation]
    if origin is Annotated:
        return sections_in(args[0])
    if origin in (Union, types.UnionType):
        return (), [section for kind in args for section in sections_in(kind)[1]]
    if origin is dict:
        steps, found = sections_in(args[1])
        return ("*", *steps), found
    if origin is tuple and args[-1] is Ellipsis:
        steps, found = sections_in(args[0])
        return ("[]", *steps), found
    return (), []
