#!/usr/bin/env python3
"""Writes tests/data/tokenizer/splits.json: where Python's regex module cuts texts for each pre-tokenizer.

Usage: tools/make_split_goldens.py SHARED_DATA > tests/data/tokenizer/splits.json

Needs regex from PyPI (made with 2026.5.9) and Python 3.11 (Unicode 14). The patterns stand here as the models'
own tokenizers spell them; src/text/pretokenizer_patterns.cc spells them for PCRE2.

A split is the lengths of the pieces in bytes of UTF-8. Texts: those of llama.cpp's vocabulary tests, and random
ones of atoms; `long` gives digests only. random text: s = seed; for each atom s = s * 6364136223846793005 +
1442695040888963407 mod 2^64, list = common if (s >> 33) % 3 else rare, then s again, atom = list[(s >> 33) % size].
digest: FNV-1a, 64 bits, over the pieces' ends, 4 bytes each, little-endian.

Only characters that are the same in Unicode 14 and in the module's version are used: the splits hold for any
PCRE2 with Unicode 14 or later.
"""

import itertools
import json
import pathlib
import sys
import unicodedata

import regex

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LINES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def words_by_case(end, digits):
    lead = r"[^\r\n\p{L}\p{N}]?"
    return (f"{lead}{UPPER}*{LOWER}+{end}|{lead}{UPPER}+{LOWER}*{end}|" + digits
            + r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + LINES)


CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
LATIN = (
    "A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-\u02AF\u0370-\u0373"
    "\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C\u038E-\u03A1\u03A3-\u03F5\u03F7-\u0481\u048A-\u052F"
    "\u0531-\u0556\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77"
    "\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B\u1F5D\u1F5F-"
    "\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC"
    "\u1FF2-\u1FF4\u1FF6-\u1FFC\u2102\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128\u212A-\u212D\u212F-"
    "\u2134\u2139\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4\u2CEB-\u2CEE\u2CF2\u2CF3"
    "\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E\uAB70-\uABBF\uFB00-\uFB06\uFB13-\uFB17"
    "\uFF21-\uFF3A\uFF41-\uFF5A\U00010400-\U0001044F\U000104B0-\U000104D3\U000104D8-\U000104FB\U00010C80-"
    "\U00010CB2\U00010CC0-\U00010CF2\U000118A0-\U000118DF\U0001E900-\U0001E943")

RULES = {
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
    "gpt-2": [GPT2],
    "llama-bpe": [CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + LINES],
    "qwen2": [CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + LINES],
    "qwen35": [CONTRACTION + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + LINES],
    "tekken": [words_by_case("", r"\p{N}")],
    "gpt-4o": [words_by_case(CONTRACTION + "?", r"\p{N}{1,3}")],
    "deepseek-v3": [
        r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"""
        + LINES],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK, r"\p{N}"],
    "deepseek-llm": [r"[\r\n]", rf"\s?[{LATIN}]+", r"\s?[!-/:-~！-／：-～‘-‟\u3000-。]+", r"\s+$", CJK, r"\p{N}+"],
    "smollm": [r"\p{N}", GPT2],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                   r"|\s*[\r\n]|\s+(?!\S)|\s+"],
}

COMMON = (list("aeinrstAEST019") + ["the", "Ab", "aB", "ABc", "x1", "1234", "'s", "'LL", "'Re", "'", "\"", ".", "...", ",",
          "-", "_", "/", "//\n", "!?", "$", "+", "=", "^", "`", "#include", "{|}", "\\", "[", "]"]
          + [" "] * 8 + ["  ", "     ", "\t", "\n", "\n", "\n\n", " \n", "\r\n", "\r", "\v"])
# Characters at the edges of classes and of the ranges above.
EDGES = ("\x85\xa0\u1680\u180e\u2000\u200a\u200b\u200c\u200d\u2028\u2029\u202f\u205f\u2060\u3000\ufeff\x1c\x1f\x7f\x00"
         "\u0130\u0131\u017f\u212a\u0345\u0300\u0301\u20dd\u0903\u01c5\u1f88\u02b0\u01bb\u05d0\u0660\u2160\u3007\u00bd\u00b2"
         "\u07ff\u0800\u0904\u4dff\u4e00\u9fa5\u9fa6\u9fff\u303f\u3041\u309f\u30a0\u30ff\u3105\uac00\ud7a3\ud7c7\ue000\uf8ff"
         "\uff01\uff0f\uff10\uff1a\uff21\uff5e\uff5f\u2018\u201f\u2020\u3001\u3002\u3003\ufe0f\ufffd\uffff"
         "\U0001f600\U0001f468\U0001f1e9\U0001f3fd\U00010400\U0001e900\U0001e943\U00020000\U000e0020\U0010ffff"
         "\u0294\u0295\u0296\u1c90\u1e9e\u2126")


def stable(char):
    """Has this character the same category in both versions of Unicode?"""
    return regex.match(rf"\p{{{unicodedata.category(char)}}}", char) is not None


def rare_atoms():
    by_category = {}
    for code in range(0x80, 0x110000):
        if not 0xD800 <= code < 0xE000 and stable(chr(code)):
            by_category.setdefault(unicodedata.category(chr(code)), []).append(chr(code))
    del by_category["Cn"]  # a later version may assign them
    atoms = [char for char in EDGES if stable(char)]
    for chars in by_category.values():
        atoms += [chars[i * len(chars) // 12] for i in range(12)] if len(chars) > 12 else chars
    return list(dict.fromkeys(atoms))


def random_text(common, rare, seed, num_atoms):
    atoms, s = [], seed

    def draw(size):
        nonlocal s
        s = (s * 6364136223846793005 + 1442695040888963407) % 2**64
        return (s >> 33) % size
    for _ in range(num_atoms):
        atoms_of = common if draw(3) else rare
        atoms.append(atoms_of[draw(len(atoms_of))])
    return "".join(atoms)


def split(stages, text):
    pieces = [text]
    for stage in stages:
        pattern, cut = regex.compile(stage), []
        for piece in pieces:
            at = 0
            for match in pattern.finditer(piece):
                cut += [piece[at:match.start()], match.group()]
                at = match.end()
            cut.append(piece[at:])
        pieces = [piece for piece in cut if piece]
    return [len(piece.encode()) for piece in pieces]


def digest(numbers):
    value = 0xCBF29CE484222325
    for number in numbers:
        for byte in number.to_bytes(4, "little"):
            value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def main():
    shared = pathlib.Path(sys.argv[1])
    rare = rare_atoms()
    texts = []
    for name in ("gpt-2", "qwen35"):
        path = shared / "tokenizer" / "vectors" / f"ggml-vocab-{name}.gguf.inp"
        texts += path.read_bytes().decode().split("\n__ggml_vocab_test__\n")
    texts = list(dict.fromkeys(texts)) + [random_text(COMMON, rare, seed, 60) for seed in range(40)]
    long = [{"seed": 1000, "num_atoms": 200000}]
    long += [{"file": f"text/{name}"} for name in ("wiki.test.raw", "tinyshakespeare.txt", "war-and-peace.txt")]
    rows = {"about": "made by tools/make_split_goldens.py", "common": COMMON, "rare": rare, "texts": texts}
    for item in long:
        text = ((shared / item["file"]).read_bytes().decode() if "file" in item
                else random_text(COMMON, rare, item["seed"], item["num_atoms"]))
        item["digests"] = {name: digest(itertools.accumulate(split(stages, text))) for name, stages in RULES.items()}
    rows["long"] = long
    rows["splits"] = {name: [" ".join(map(str, split(stages, text))) for text in texts]
                      for name, stages in RULES.items()}
    print("{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in rows.items()) + "\n}")


if __name__ == "__main__":
    main()
