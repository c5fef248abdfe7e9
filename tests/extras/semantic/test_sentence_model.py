"""Which folders are read as sentence-embedding models, and which error rejects the others."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import rc1_lib.extras.semantic.sentence_model as sentence_model
from rc1_lib.cli import main
from rc1_lib.errors import RC1Error
from rc1_lib.extras.semantic.sentence_model import SentenceModel, check_folder

from .sentence_folders import bag_of_words

WORDS = "who built the tower of ara when it was new and where does a river run".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bag_of_words(tmp_path_factory.mktemp("sentence") / "model", WORDS)


def test_vector_does_not_depend_on_the_batch(folder: Path) -> None:
    model = SentenceModel(folder)
    short, long = "who built ara", " ".join(WORDS)
    (together, cut), (alone, _) = model.vectors([short, long, short]), model.vectors([short])
    assert not cut.any()
    assert together.shape == (3, 64)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    assert np.allclose(together[[0, 2]], alone, atol=1e-5)
    assert float(together[0] @ together[1]) < 0.99


def test_vectors_keep_the_order_of_texts_across_batches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = SentenceModel(folder)
    texts = [" ".join(WORDS[:count]) for count in (1, 9, 3, 16, 2, 16)]
    at_once, _ = model.vectors(texts)
    monkeypatch.setattr(sentence_model, "_TOKENS", 20)
    assert np.allclose(model.vectors(texts)[0], at_once, atol=1e-5)


def test_texts_beyond_the_model_length_are_marked_as_cut(folder: Path) -> None:
    model = SentenceModel(folder)
    vectors, cut = model.vectors(["who " * 63, "who " * 200 + "built", "who " * 62])  # [CLS] and [SEP] count, too
    assert (model.longest, cut.tolist()) == (64, [True, True, False])
    assert np.allclose(vectors[0], vectors[1], atol=1e-5)


def test_pooling_follows_the_model_file_and_defaults_to_the_mean(folder: Path, tmp_path: Path) -> None:
    first = SentenceModel(bag_of_words(tmp_path / "first", WORDS, "cls_token"))
    mean, default = SentenceModel(folder), SentenceModel(bag_of_words(tmp_path / "default", WORDS, ""))
    text = ["who built the tower"]
    assert not np.allclose(first.vectors(text)[0], mean.vectors(text)[0], atol=1e-2)
    assert np.allclose(default.vectors(text)[0], mean.vectors(text)[0], atol=1e-6)


def _delete(name: str) -> Callable[[Path], None]:
    return lambda folder: next(folder.glob(name)).unlink()


def _write(name: str, body: object) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).write_text(body if isinstance(body, str) else json.dumps(body))

    return write


def _truncate_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def _fill_with_nan(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    save_file({name: np.full_like(one, np.nan) for name, one in weights.items()}, folder / "model.safetensors")


def _delete_one_weight(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    del weights["encoder.layer.0.output.dense.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (shutil.rmtree, "model not found"),
        (_delete("config.json"), r"\(no config\.json\)"),
        (_delete("*.safetensors"), r"\*\.safetensors"),
        (_write("modules.json", [{"type": "sentence_transformers.models.Dense"}]), " Dense, .*Transformer"),
        (_write("modules.json", {}), r"modules\.json .*dict, .*list"),
        (_write("1_Pooling/config.json", {"pooling_mode_max_tokens": True}), "pooling_mode_max_tokens"),
        (_write("1_Pooling/config.json", "{"), r"1_Pooling/config\.json .*JSON"),
        (_delete("tokenizer.json"), "cannot be read"),
        (_write("config.json", {"model_type": "nothing"}), "cannot be read"),
        (_truncate_weights, "cannot be read"),
        (_delete_one_weight, r" encoder\.layer\.0\.output\.dense\.weight"),
        (_fill_with_nan, "weights .*damaged"),
    ],
)
def test_damaged_or_foreign_model_folder_is_rejected(
    folder: Path, tmp_path: Path, damage: Callable[[Path], None], error: str
) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "model"))
    damage(copy)
    with pytest.raises(RC1Error, match=f"gates.leakage.semantic.model: .*{error}"):
        SentenceModel(copy)


def test_missing_library_is_named_with_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_model, "find_spec", lambda name: None if name == "torch" else True)
    with pytest.raises(RC1Error, match=r"^gates\.leakage\.semantic\.model .*torch.*rc1\[semantic\]"):
        check_folder(folder)


def test_preflight_rejects_a_missing_model_folder_before_building(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ("--set", "gates.leakage.semantic.model=models/sentences")
    with pytest.raises(SystemExit, match="2"):
        main(["preflight", "--workspace", str(tmp_path / "ws"), *settings])
    assert "gates.leakage.semantic.model: folder" in capsys.readouterr().err
    assert not (tmp_path / "ws" / "seeds").exists()
