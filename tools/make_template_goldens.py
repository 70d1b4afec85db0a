#!/usr/bin/env python3
"""Writes tests/data/templates/goldens.json: what Python's Jinja2 makes of chat templates.

Usage: tools/make_template_goldens.py TEMPLATE_FOLDER > tests/data/templates/goldens.json

Needs Jinja2 (made with 3.1.6). Templates are TEMPLATE_FOLDER/*.jinja and tests/data/templates/*.jinja.
The environment is the one of Hugging Face's transformers: sandboxed, trim_blocks and lstrip_blocks
on, tojson as json.dumps without HTML and ASCII escapes.

Two things differ from it, because real templates need them:
  - lists can be changed (Kimi-K2 calls append and pop; the immutable sandbox refuses),
  - tojson takes what map() gives (llama.cpp's deepseek-r1 passes it on; json.dumps refuses).

Each case is {messages, extra}; each golden is a text, or {"error": message} if the template raised
an exception of its own, or {"fails": kind} if an operation failed.
"""

import datetime
import json
import pathlib
import sys
import types

import jinja2
from jinja2.sandbox import SandboxedEnvironment

NOW = datetime.datetime(2026, 11, 29, 23, 59, 0)

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": 'Wetter für einen Ort <b> & "x"',
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": " The city's name "},
                "days": {"type": "integer", "description": "How many days", "default": 3},
                "unit": {"type": "string", "enum": ["C", "F"], "description": "Unit", "nullable": True},
                "hours": {"type": "array", "items": {"type": "number"}, "description": "Hours"},
            },
            "required": ["city"],
        },
    },
}
SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Looks things up",
        "parameters": {
            "type": "object",
            "properties": {
                "Query": {"type": "string", "description": "Words"},
                "filter": {
                    "type": "object",
                    "description": "Limits",
                    "properties": {"min": {"type": "number", "description": "Least"},
                                   "exact": {"type": "boolean", "description": "Same"}},
                    "required": ["min"],
                },
            },
            "required": ["Query", "filter"],
        },
    },
}

SYSTEM = {"role": "system", "content": "  Du bist höflich.\n"}
HI = {"role": "user", "content": "Hi"}
ROUNDS = [
    {"role": "user", "content": " What is 2+2?\n"},
    {"role": "assistant", "content": "<think>\nadd\n</think>\n\n4"},
    {"role": "user", "content": "and 3+3? 🙂 <|im_end|>"},
    {"role": "assistant", "content": "6"},
    {"role": "user", "content": "Thanks"},
]


def call(name, arguments, call_id):
    return {"type": "function", "id": call_id, "function": {"name": name, "arguments": arguments}}


ONE_CALL = [
    {"role": "user", "content": "Weather in Zürich?"},
    {"role": "assistant", "content": "",
     "tool_calls": [call("get_weather", {"city": "Zürich", "days": 2, "unit": None}, "abcdef123")]},
]
CALL_AND_RESULT = ONE_CALL + [
    {"role": "tool", "name": "get_weather", "tool_call_id": "abcdef123", "content": '{"t": -3.5}'},
]
ANSWERED = CALL_AND_RESULT + [{"role": "assistant", "content": "Cold."},
                              {"role": "user", "content": "Oh"}]
TWO_CALLS = [
    {"role": "user", "content": "Both"},
    {"role": "assistant", "content": "I look.", "reasoning_content": "two tools\n",
     "tool_calls": [call("get_weather", {"city": "Oslo"}, "aaaaaaaa1"),
                    call("search", {"Query": "x\"y", "filter": {"min": 1.0, "exact": True}}, "aaaaaaaa2")]},
    {"role": "tool", "name": "get_weather", "tool_call_id": "aaaaaaaa1", "content": "rain"},
    {"role": "tool", "name": "search", "tool_call_id": "aaaaaaaa2", "content": "nothing"},
]

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
GO = {**TOKENS, "add_generation_prompt": True}
STOP = {**TOKENS, "add_generation_prompt": False}

CASES = {
    "user": ([HI], GO),
    "user, no generation prompt": ([HI], STOP),
    "user, nothing given": ([HI], {}),
    "system and user": ([SYSTEM, HI], GO),
    "rounds": (ROUNDS, GO),
    "rounds with system": ([SYSTEM] + ROUNDS, GO),
    "rounds that end with the assistant": (ROUNDS[:4], STOP),
    "two users": ([HI, HI], GO),
    "thinking off": ([HI], {**GO, "enable_thinking": False, "thinking": False}),
    "thinking on": ([SYSTEM] + ROUNDS, {**GO, "enable_thinking": True, "thinking": True}),
    "tools": ([HI], {**GO, "tools": [WEATHER, SEARCH]}),
    "tools with system": ([SYSTEM, HI], {**GO, "tools": [WEATHER]}),
    "tools, thinking off": ([HI], {**GO, "tools": [WEATHER], "enable_thinking": False}),
    "call": (ONE_CALL, {**STOP, "tools": [WEATHER]}),
    "call and result": (CALL_AND_RESULT, {**GO, "tools": [WEATHER]}),
    "call, result, answer": (ANSWERED, {**GO, "tools": [WEATHER]}),
    "two calls": (TWO_CALLS, {**GO, "tools": [WEATHER, SEARCH]}),
    "calls without tools": ([SYSTEM] + CALL_AND_RESULT, GO),
    "date": ([HI], {**GO, "date_string": "1 Jan 2027", "reasoning_effort": "high"}),
    "documents": ([SYSTEM, HI], {**GO, "documents": [{"doc_id": 1, "text": "Ä b"}]}),
    "builtin tools": ([HI], {**GO, "builtin_tools": ["browser", "python", "code_interpreter"]}),
    "custom tools": ([HI], {**GO, "custom_tools": [WEATHER], "tools_in_user_message": False}),
}


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    if isinstance(value, types.GeneratorType):
        value = list(value)
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


class Raised(Exception):
    pass


def raise_exception(message):
    raise Raised(message)


def environment():
    env = SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                               extensions=["jinja2.ext.loopcontrols"])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(template, messages, extra):
    try:
        return template.render(messages=messages, **extra)
    except Raised as error:
        return {"error": str(error)}
    except (TypeError, ValueError, ArithmeticError, LookupError, jinja2.TemplateError) as error:
        return {"fails": type(error).__name__}


def main():
    here = pathlib.Path(__file__).parent.parent / "tests" / "data" / "templates"
    files = sorted(pathlib.Path(sys.argv[1]).glob("*.jinja")) + sorted(here.glob("*.jinja"))
    texts = []
    places = {}
    goldens = {}
    for file in files:
        template = environment().from_string(file.read_text())
        goldens[file.name] = {}
        for name, (messages, extra) in CASES.items():
            result = render(template, json.loads(json.dumps(messages)), json.loads(json.dumps(extra)))
            # Many results are equal: each is written once.
            key = json.dumps(result)
            if key not in places:
                places[key] = len(texts)
                texts.append(result)
            goldens[file.name][name] = places[key]
    data = {
        "made by": f"tools/make_template_goldens.py, Jinja2 {jinja2.__version__}",
        "now": NOW.isoformat(),
        "cases": {name: {"messages": messages, "extra": extra} for name, (messages, extra) in CASES.items()},
        "goldens": goldens,
        "results": texts,
    }
    json.dump(data, sys.stdout, ensure_ascii=False, indent=0)
    print()


if __name__ == "__main__":
    main()
