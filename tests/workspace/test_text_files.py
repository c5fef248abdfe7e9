"""Every reader gives the same result for each encoding and compression, and an error that names unreadable files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.config.file import read_yaml
from rc1_lib.errors import RC1Error, SourceError
from rc1_lib.evidence import Evidence
from rc1_lib.judge.score_files import read_dialogues
from rc1_lib.labels.label_file import read_labels
from rc1_lib.pool.templates import load_pack
from rc1_lib.rows.frame import read_rows
from rc1_lib.sources.local import load_local
from rc1_lib.sources.record_files import read_records
from rc1_lib.sources.rows import load_rows
from rc1_lib.training.labelled_rows import read_rows as read_labelled
from rc1_lib.workspace import input_files
from rc1_lib.workspace.input_files import form_of, read_text
from tests.pool.test_templates import template

STORY = {"question": "He packed 3 péars. How many are two packs?", "answer": "<<3*2=6>>\n#### 6"}
DIALOGUE = [{"role": "user", "content": "Zwölf?"}, {"role": "assistant", "content": "Ja."}]


def zstd(content: bytes) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    return bytes(pyarrow.compress(content, codec="zstd", asbytes=True))


ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "with a mark and CRLF": lambda content: b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"),
    "with zstd": zstd,
    "with a mark and gzip": lambda content: gzip.compress(b"\xef\xbb\xbf" + content),
}
UNREADABLE: dict[str, tuple[bytes, str]] = {
    "zip": (b"PK\x03\x04" + b"x" * 40, "is packed with zip; unpack it first"),
    "half a gzip": (gzip.compress(b"{}\n" * 999)[:-9], "is packed with gzip and damaged"),
    "UTF-16": ('{"a": 1}\n'.encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
    "a table": (b"PAR1" + b"x" * 40, "is a Parquet table"),
}


def lines(*records: Any) -> bytes:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def pack(path: Path) -> object:
    return load_pack(path.parent)


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "sources": ("data/gsm8k/a.jsonl", lambda path: load_local(path.parents[1], ["gsm8k"])),
    "finished rows": ("rows.jsonl", lambda path: load_rows(path, ["gsm8k"])),
    "pool rows": ("rows.jsonl", lambda path: read_rows(path).to_dicts()),
    "score --in": ("dialogues.jsonl", read_dialogues),
    "train_local": ("train.jsonl", lambda path: list(read_labelled(path))),
    "templates": ("maths.en.json", pack),
    "labels": ("labels.jsonl", lambda path: read_labels(path).rows.to_dicts()),
    "labels as a table": ("labels.csv", lambda path: read_labels(path).rows.to_dicts()),
    "a configuration": ("own.yaml", read_yaml),
}


@pytest.fixture(scope="module")
def contents(evidence: Evidence) -> dict[str, bytes]:
    rows = evidence.path("pool").read_bytes().splitlines(keepends=True)
    chosen = b"".join([row for row in rows if b'"task":"gsm8k"' in row][:3])
    labels = [{"messages": [*DIALOGUE, {"role": "assistant", "content": str(n)}], "label": "good"} for n in range(2)]
    table = "label,group,messages\n" + "".join(
        f'{row["label"]},ä,"{json.dumps(row["messages"]).replace(chr(34), chr(34) * 2)}"\n' for row in labels
    )
    body = {"pack": "p", "kind": "maths", "lang": "en", "templates": [template()]}
    return {
        "sources": lines(STORY),
        "finished rows": chosen,
        "pool rows": chosen,
        "score --in": lines({"messages": DIALOGUE}, {"messages": DIALOGUE}),
        "train_local": lines({"input": "zwölf?", "output": "12"}, {"input": "b", "output": "c"}),
        "templates": json.dumps(body, indent=1).encode(),
        "labels": lines(*labels),
        "labels as a table": table.encode(),
        "a configuration": "a: ö\nb:\n  c: 1\n".encode(),
    }


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("reader", READERS)
def test_a_reader_gives_the_same_result_for_each_encoding(
    reader: str, encoding: str, contents: dict[str, bytes], tmp_path: Path
) -> None:
    name, read = READERS[reader]
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents[reader])
    plain = read(path)
    path.write_bytes(ENCODINGS[encoding](contents[reader]))
    found = read(path)
    assert found == plain


@pytest.mark.parametrize("form", UNREADABLE)
@pytest.mark.parametrize("reader", READERS)
def test_a_reader_raises_an_error_that_names_an_unreadable_file(reader: str, form: str, tmp_path: Path) -> None:
    name, read = READERS[reader]
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    content, reason = UNREADABLE[form]
    path.write_bytes(content)
    with pytest.raises(RC1Error, match=rf"{path.name}:? .*\({reason}"):
        read(path)


def test_the_size_limit_applies_to_the_decompressed_text(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(gzip.compress(b"a" * 1999 + b"\n"))
    assert len(read_text(path, 2000)) == 2000
    with pytest.raises(OSError, match="1,999 bytes"):
        read_text(path, 1999)


@pytest.mark.parametrize("line", [b"\n", b"{}\n", b"x" * 999 + b"\n"])
def test_a_packed_file_that_would_fill_the_memory_is_refused(
    line: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_files, "_LITTLE", 10_000)
    path = tmp_path / "data/gsm8k/a.jsonl.gz"
    path.parent.mkdir(parents=True)
    for count, refused in ((1, False), (3_000_000 // len(line), True)):
        path.write_bytes(gzip.compress(line * count))
        with pytest.raises(OSError, match="unpacks to") if refused else nullcontext():
            assert read_text(path).encode() == line * count


def test_blank_lines_are_counted_and_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('\n\n{"a": 1}\n \n\n{"a": 2}')
    assert [(record.index, record.line) for record in read_records(path)] == [(0, 3), (1, 6)]
    path.write_text('\n{"a": 1\n')
    with pytest.raises(SourceError, match=r"a\.jsonl, line 2: not valid JSON"):
        list(read_records(path))


@pytest.mark.parametrize(
    ("name", "form"),
    [("a.b.JSONL.gz", ".jsonl"), ("a.csv.zst", ".csv"), ("a.gz", "")],
)
def test_the_form_is_the_suffix_before_that_of_the_compression(name: str, form: str) -> None:
    assert form_of(Path(name)) == form
