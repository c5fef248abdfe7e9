"""Write the model of a llama.cpp file as a folder that `base_model` can name; transformers reads the file.

python models/from_gguf.py MODEL.gguf FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def from_gguf(file: Path, folder: Path) -> None:
    """Write weights in bf16 and the tokenizer, which must not lie next to the file: transformers would prefer that."""
    named = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    tokenizer = AutoTokenizer.from_pretrained(**named)
    read = AutoModelForCausalLM.from_pretrained(**named, dtype=torch.float32)
    shape = read.config
    if hasattr(shape, "quantization_config"):
        del shape.quantization_config
    plain = type(read)(shape)  # transformers cannot save a model that it has read from such a file
    plain.load_state_dict(read.state_dict())
    plain.tie_weights()
    begun = folder.with_name(f"{folder.name}.begun")
    plain.to(torch.bfloat16).save_pretrained(begun)
    (begun / "generation_config.json").unlink(missing_ok=True)  # comes from transformers, not from the file
    tokenizer.save_pretrained(begun)
    begun.rename(folder)


if __name__ == "__main__":
    from_gguf(Path(sys.argv[1]), Path(sys.argv[2]))
