#!/usr/bin/env python3
"""Makes tests/data/models: small models with golden logits, so that a clone alone can test the engine.

Usage: tools/make_model_fixtures.py SHARED_DATA      (needs numpy and gguf from PyPI)

Run by hand; its output is committed. SHARED_DATA is the folder of the project's shared test data. Writes

  NAME.gguf, NAME.logits.f32   the six dense llama models of its models/rplus, copied
  goldens.json                 their entries of the manifest: ids, positions, tolerances, greedy continuations
  tiny.json                    the tiny models of goldens/greedy.json of the architectures below, dense: keys, tensor
                               shapes, logits
  llama-gqa.TYPE.gguf          llama-gqa with every matrix re-quantised to F16, BF16, Q8_0, Q4_0 or Q4_1

The re-quantised files have no golden of another program: tests compare with tests/reference.
"""

import json
import pathlib
import shutil
import sys

import gguf

MODELS = ["llama-gqa", "llama-mha", "llama-mqa", "llama-hd80", "llama-linear", "llama-yarn"]
TINY_ARCHITECTURES = ["llama", "qwen2", "qwen3", "gemma3"]
TYPES = ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1"]
OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "models"


def copy_goldens(rplus):
    manifest = json.loads((rplus / "manifest.json").read_text())
    kept = [model for model in manifest["models"] if model["name"] in MODELS]
    used = {golden.get("tokens", model["tokens"]) for model in kept for golden in model["goldens"]}
    for model in kept:
        for name in [model["file"]] + [golden["file"] for golden in model["goldens"]]:
            shutil.copyfile(rplus / name, OUT / name)
    result = {
        **{key: manifest[key] for key in ("what", "oracle", "second_opinion", "logits", "token_lcg", "positions")},
        "tokens": {key: value for key, value in manifest["tokens"].items() if key in used},
        "models": kept,
    }
    write_json(OUT / "goldens.json", result)


def copy_tiny(greedy):
    tiny = json.loads(greedy.read_text())["tiny"]
    models = [model for model in tiny["models"]
              if model["arch"] in TINY_ARCHITECTURES and "expert_count" not in model["kv"]]
    write_json(OUT / "tiny.json", {"how": tiny["how"], "models": models})


def write_json(path, value):
    """Indented, with lists of numbers on one line each."""
    def text(x, indent):
        if isinstance(x, dict):
            rows = [f"{indent} {json.dumps(key)}: {text(item, indent + ' ')}" for key, item in x.items()]
            return "{\n" + ",\n".join(rows) + "\n" + indent + "}"
        if isinstance(x, list) and any(isinstance(item, (dict, list)) for item in x):
            return "[\n" + ",\n".join(f"{indent} {text(item, indent + ' ')}" for item in x) + "\n" + indent + "]"
        return json.dumps(x)
    path.write_text(text(value, "") + "\n")


def requantise(source, type_name):
    """A copy of the model with every matrix in the given type; vectors, and rows that do not divide, stay F32."""
    weight_type = gguf.GGMLQuantizationType[type_name]
    block = gguf.GGML_QUANT_SIZES[weight_type][0]
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(OUT / f"{source.stem}.{type_name}.gguf", reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name not in ("general.architecture", "general.file_type"):
            writer.add_key_value(name, field.contents(), field.types[0])
    writer.add_file_type(gguf.LlamaFileType["MOSTLY_" + type_name])
    for tensor in reader.tensors:
        if len(tensor.shape) == 2 and tensor.shape[0] % block == 0:
            writer.add_tensor(tensor.name, gguf.quantize(tensor.data, weight_type), raw_dtype=weight_type)
        else:
            writer.add_tensor(tensor.name, tensor.data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    shared = pathlib.Path(sys.argv[1])
    OUT.mkdir(parents=True, exist_ok=True)
    copy_goldens(shared / "models" / "rplus")
    copy_tiny(shared / "goldens" / "greedy.json")
    for type_name in TYPES:
        requantise(OUT / "llama-gqa.gguf", type_name)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
