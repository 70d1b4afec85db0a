#!/usr/bin/env python3
"""Makes the input of quire_kl: ids of a text, and a float64 pass's logits of its last positions.

Usage: tools/make_kl_reference.py MODEL.gguf TEXT OUT_FOLDER [--ids N] [--rows N] [--kv16]
       (needs numpy and gguf from PyPI; `quire tokenize` on the path, or --quire PROGRAM)

Writes OUT_FOLDER/ids.json (the first N ids of the text, default 2048) unless it is there, and
OUT_FOLDER/ref.f32, or kv16.f32 with --kv16: little-endian f32 logits [rows][vocab_size] of the last rows
(default 1024). The pass is plain float64 numpy on the exact dequantised weights of a dense llama file
without biases, with nothing rounded; --kv16 rounds K (after rope) and V to f16, which tells what an f16
cache costs by itself. SmolLM2-135M with the defaults: about a minute and 3 GB.
"""

import argparse
import json
import pathlib
import subprocess

import gguf
import numpy as np


class Model:
    """Keys without their prefix, and tensors as float64 [rows, columns]."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.keys = {name.removeprefix("llama."): field.contents() for name, field in reader.fields.items()
                     if name.startswith("llama.")}
        self.raw = {tensor.name: tensor for tensor in reader.tensors}
        unknown = [name for name in self.raw if name.endswith((".bias", ".scale")) or "_exps" in name]
        scaling = self.keys.get("rope.scaling.factor", 0.0) not in (0.0, 1.0)
        if unknown or scaling or "rope_freqs.weight" in self.raw or "blk.0.attn_q.weight" not in self.raw:
            raise SystemExit("this pass is for plain dense llama files only: tests/reference knows all forms")

    def tensor(self, name):
        tensor = self.raw[name]
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        return values.reshape([int(n) for n in reversed(tensor.shape)]).astype(np.float64)


def rms_norm(x, weight, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def rotate(x, base):
    """x [tokens, heads, head_dim]: pairs (2j, 2j + 1) turn by position * base^(-2j / head_dim)."""
    tokens, _, head_dim = x.shape
    angles = np.arange(tokens)[:, None, None] * base ** (-np.arange(0, head_dim, 2) / head_dim)
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = [even * np.cos(angles) - odd * np.sin(angles), even * np.sin(angles) + odd * np.cos(angles)]
    return np.stack(turned, -1).reshape(x.shape)


def attend(q, k, v):
    """Causal attention of q [tokens, heads, head_dim] over k and v [tokens, kv_heads, head_dim]."""
    tokens, heads, head_dim = q.shape
    group = heads // k.shape[1]
    hidden = np.triu(np.ones((tokens, tokens), bool), 1)
    out = np.empty_like(q)
    for head in range(heads):
        scores = q[:, head] @ k[:, head // group].T / np.sqrt(head_dim)
        scores[hidden] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        out[:, head] = weights / weights.sum(-1, keepdims=True) @ v[:, head // group]
    return out.reshape(tokens, -1)


def final_states(model, ids, round_kv):
    keys = model.keys
    heads = keys["attention.head_count"]
    kv_heads = keys.get("attention.head_count_kv", heads)
    epsilon, base = keys["attention.layer_norm_rms_epsilon"], keys.get("rope.freq_base", 10000.0)
    x = model.tensor("token_embd.weight")[ids]
    for layer in range(keys["block_count"]):
        def linear(name, y):
            return y @ model.tensor(f"blk.{layer}.{name}.weight").T
        h = rms_norm(x, model.tensor(f"blk.{layer}.attn_norm.weight"), epsilon)
        q = rotate(linear("attn_q", h).reshape(len(ids), heads, -1), base)
        k = round_kv(rotate(linear("attn_k", h).reshape(len(ids), kv_heads, -1), base))
        v = round_kv(linear("attn_v", h).reshape(len(ids), kv_heads, -1))
        x = x + linear("attn_output", attend(q, k, v))
        h = rms_norm(x, model.tensor(f"blk.{layer}.ffn_norm.weight"), epsilon)
        gate = linear("ffn_gate", h)
        x = x + linear("ffn_down", gate / (1 + np.exp(-gate)) * linear("ffn_up", h))
    return rms_norm(x, model.tensor("output_norm.weight"), epsilon)


def read_ids(args, path):
    if not path.exists():
        with open(args.text, "rb") as text:
            answer = subprocess.run([args.quire, "tokenize", args.model, "--json"], check=True, stdin=text,
                                    stdout=subprocess.PIPE)
        path.write_text(json.dumps(json.loads(answer.stdout)["ids"][:args.ids]) + "\n")
    return json.loads(path.read_text())[:args.ids]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--ids", type=int, default=2048)
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--kv16", action="store_true")
    parser.add_argument("--quire", default="quire")
    args = parser.parse_args()

    args.out.mkdir(parents=True, exist_ok=True)
    model, ids = Model(args.model), read_ids(args, args.out / "ids.json")
    round_kv = (lambda x: x.astype(np.float16).astype(np.float64)) if args.kv16 else (lambda x: x)
    states = final_states(model, ids, round_kv)[-args.rows:]
    output = model.tensor("output.weight" if "output.weight" in model.raw else "token_embd.weight")
    with open(args.out / ("kv16.f32" if args.kv16 else "ref.f32"), "wb") as file:
        for begin in range(0, len(states), 128):
            (states[begin:begin + 128] @ output.T).astype("<f4").tofile(file)


if __name__ == "__main__":
    main()
