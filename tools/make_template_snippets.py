#!/usr/bin/env python3
"""Writes tests/data/templates/snippets.json: what Python's Jinja2 makes of small templates.

Usage: tools/make_template_snippets.py > tests/data/templates/snippets.json

Each row is [template, result]; a result is a text, or {"fails": kind}. The environment is that of
make_template_goldens.py; all variables are in VARIABLES.
"""

import json
import sys

from make_template_goldens import environment, render

VARIABLES = {
    "a": "Straße Ärger", "n": 7, "f": 2.5, "t": True, "z": None, "e": "", "s": "  x y \n",
    "l": [3, 1, 2], "d": {"b": 1, "A": [1, {"x": "it's"}], "items": 5}, "u": "a🙂b\u2028é",
    "w": [{"r": "user", "c": {"k": 1}}, {"r": "tool", "c": {"k": 2}}, {"r": "user"}],
}

SNIPPETS = r"""
x{% if t %}y{% endif %}z
x\n  {% if t %}\n  y\n  {% endif %}\nz\n
x\n  {%- if t -%}\n  y\n  {%- endif +%}\nz\n\n
 {% if t %} a {%+ endif %} b
  {# c #}\n{#- d -#}  \n e {# f +#}\n g
{{ 1 }}\n{{ 2 -}}\n {{- 3 }}
a  {{- 'x' -}}  b {%- raw %} {{ x }} {% endraw -%}  c
{% raw -%}  {% if %}  {%- endraw %} d
{{ '\n\t\\\'\"\x41\u00e9\U0001F642\101\q' }}
{{ "a" 'b' "c" }}
{{ 1 + 2 * 3 - 4 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % -3 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 2 ** -1 }}
{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1e3 }} {{ 1_000 }} {{ 0x1f }} {{ 1.0 }} {{ 1e16 }} {{ 1e-5 }} {{ 0.1 + 0.2 }} {{ 123456789.125 }}
{{ 1 / 3 }} {{ 1e300 * 1e10 }} {{ 100000000000000000.0 }} {{ 0.0001 }} {{ -0.0 }}
{{ 1 + t }} {{ n * 2.0 }} {{ 'ab' * 3 }} {{ [1] * 2 }} {{ [1] + [2] }} {{ (1,) + (2,) }} {{ 'a' ~ 1 ~ none ~ u0 ~ 2.0 }}
{{ 1 / 0 }}
{{ 'a' + 1 }}
{{ z + 'a' }}
{{ u0 + 'a' }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' == 1 }} {{ (1,) == [1] }}
{{ 1 < 'a' }}
{{ 3 >= 3 }} {{ 3 <= 2 }} {{ 3 != 3 }} {{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }} {{ u0 == u1 }} {{ u0 == none }}
{{ 'x' in s }} {{ 'q' not in s }} {{ 2 in l }} {{ 'b' in d }} {{ 'q' in u0 }} {{ '' in 'a' }}
{{ 1 in 'a' }}
{{ 1 in 5 }}
{{ not t and f or 'x' }} {{ t and e }} {{ e or z }} {{ not not 1 }} {{ 1 if e else 2 }}{{ 1 if e }} {{ 1 if t else 2 if e else 3 }}
{{ -n | abs }} {{ - n }} {{ +n }} {{ -2 ** 2 }} {{ (-1) | string ~ 'a' }}
{{ t }} {{ z }} {{ u0 }} {{ l }} {{ d }} {{ (1,) }} {{ () }} {{ [u0] }} {{ True }} {{ None }} {{ none }}
{{ ["a'b", 'a"b', "\n\\", 'é\x01', u, 1.5, none] }}
{{ u0.x }}
{{ u0['x'] }}
{{ d.x }}|{{ d.x is defined }}|{{ d['x'] is undefined }}|{{ d.b }}|{{ d['A'][1].x }}|{{ d.items is callable }}|{{ d['items'] }}
{{ d.x.y }}
{{ l[0] }}{{ l[-1] }}{{ l[9] is defined }} {{ l.0 }} {{ 'abc'[1] }}{{ u[1] }}{{ u[-1] }}{{ 'abc'[9] is defined }}
{{ l[1:] }}{{ l[:1] }}{{ l[::-1] }}{{ l[-2:] }}{{ l[5:] }}{{ l[:-1] }}{{ l[::2] }}{{ 'hello'[1:4] }}{{ 'hello'[::-1] }}{{ u[1:3] }}{{ 'hello'[4:1:-2] }}{{ 'hello'[:2:-1] }}{{ 'abc'[-9:9] }}
{{ 'abc'[::0] }}
{{ n.x is defined }} {{ 'a'.nope is defined }} {{ z.x is defined }}
{% for x in l %}{{ x }}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.depth }};{% endfor %}
{% for x in l %}{{ loop.previtem }},{{ loop.nextitem is defined }},{{ loop.previtem is defined }};{% endfor %}
{% for x in l if x > 1 %}{{ x }}{{ loop.length }}{% else %}none{% endfor %}{% for x in [] %}a{% else %}none{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in u %}[{{ c }}]{% endfor %}
{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}{% for x in u0 %}a{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% for x in 5 %}{% endfor %}
{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% set x = 1 %}{% for i in l %}{{ x }}{% set x = i %}{{ x }}{% endfor %}{{ x }}
{% set ns = namespace(x=1) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.y is defined }}
{% set q.x = 1 %}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 1, 2 %}{{ c }}{% set x %} q {{ n }}{% endset %}[{{ x }}]
{% if t %}{% set x = 5 %}{% endif %}{{ x }}{% if e %}{% elif t %}b{% else %}c{% endif %}
{% with x = 3, y = 4 %}{{ x + y }}{% endwith %}{{ x is defined }}
{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=4) }}{{ m() }}{{ m(1) | upper }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}
{% macro m(x) %}{% if x > 0 %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(3) }}
{% macro m() %}{{ later }}{% endmacro %}{% set later = 3 %}{{ m() }}
{% set x = 1 %}{% macro m() %}{% set x = 2 %}{{ x }}{% endmacro %}{{ m() }}{{ x }}
{{ m() }}
{{ n() }}
{% for i in l %}{% for j in l %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}
{{ s | trim }}|{{ '--x-' | trim('-') }}|{{ s.strip() }}|{{ s.lstrip() }}|{{ s.rstrip() }}|{{ 'xyx'.strip('yx') }}|{{ 'abc'.lstrip('ba') }}|{{ 'abc'.rstrip('cb') }}|{{ 5 | trim }}|{{ u0 | trim }}
{{ 'a,b,,c'.split(',') }}{{ ' a  b '.split() }}{{ 'a,b,c'.split(',', 1) }}{{ 'a,b,c'.rsplit(',', 1) }}{{ ''.split(',') }}{{ ''.split() }}{{ ' a b  c '.split(none, 1) }}{{ 'abcabc'.split('bc') }}{{ 'aaa'.rsplit('aa') }}
{{ 'a'.split('') }}
{{ 'aXbX'.replace('X', '--') }}{{ 'aaa'.replace('a', 'b', 2) }}{{ 'ab'.replace('', '-') }}{{ 'ab' | replace('a', 'c') }}{{ u.replace('', '.', 2) }}
{{ 'abc'.startswith('a') }}{{ 'abc'.endswith(('x', 'c')) }}{{ 'abc'.find('c') }}{{ u.find('b') }}{{ 'abc'.find('q') }}{{ 'aba'.rfind('a') }}{{ 'banana'.count('an') }}
{{ a | upper }} {{ a | lower }} {{ a.upper() }} {{ 'hELLO wORLD-x' | title }} {{ "it's a-b" .title() }} {{ 'éa B' | capitalize }} {{ 'ŉǆﬁ' | upper }}
{{ ','.join(['a', 'b']) }} {{ [1, none, 'a'] | join('-') }} {{ w | join(',', attribute='r') }} {{ 'ab' | join('.') }}
{{ 'a=b=c'.partition('=') }}{{ 'abc'.partition('=') }}{{ 'abc'.removeprefix('a') }}{{ 'abc'.removesuffix('c') }}{{ 'a\nb\r\nc\n'.splitlines() }}
{{ '12'.isdigit() }}{{ ''.isdigit() }}{{ 'aB'.isalpha() }}{{ ' \n'.isspace() }}{{ 'a1'.isalnum() }}{{ 'a b'.isalnum() }}
{{ d.get('b') }}{{ d.get('q') }}{{ d.get('q', 3) }}{{ d.keys() | list }}{{ d.values() | list }}{{ d.items() | list }}{{ d | items | list }}
{{ l | length }}{{ a | length }}{{ u | length }}{{ d | count }}{{ u0 | length }}{{ e | length }}
{{ n | length }}
{{ u0 | default('x') }}{{ z | default('x') }}{{ e | default('x', true) }}{{ e | default('x', boolean=true) }}{{ u0 | d }}{{ d.q | default([]) }}
{{ d | dictsort }}{{ {'b': 1, 'B': 0, 'a': 2} | dictsort }}{{ {'b': 1, 'B': 0, 'a': 2} | dictsort(true) }}{{ {'b': 1, 'a': 2} | dictsort(by='value') }}{{ {'b': 1, 'a': 2} | dictsort(reverse=true) }}
{{ l | sort }}{{ l | sort(reverse=true) }}{{ ['b', 'A', 'a'] | sort }}{{ w | sort(attribute='r') | map(attribute='r') | list }}{{ l | reverse | list }}{{ 'abc' | reverse }}
{{ [1, 'a'] | sort }}
{{ l | first }}{{ l | last }}{{ [] | first is defined }}{{ l | max }}{{ l | min }}{{ l | sum }}{{ [1, 1, 2] | unique | list }}{{ ['a', 'A'] | unique | list }}
{{ w | map(attribute='c.k') | list }}{{ w | map(attribute='c.k', default=0) | list }}
{{ w | map(attribute='r') | map('upper') | list }}{{ w | selectattr('r', 'equalto', 'user') | list | length }}{{ w | rejectattr('r', 'eq', 'user') | list }}{{ w | selectattr('c') | list | length }}{{ l | select('odd') | list }}{{ l | reject('equalto', 1) | list }}{{ [0, 1, ''] | select | list }}
{{ '42' | int }}{{ '4.7' | int }}{{ 'x' | int }}{{ 'x' | int(5) }}{{ 3.9 | int }}{{ '1.5' | float }}{{ 'q' | float }}{{ t | int }}{{ ' 7 ' | int }}
{{ 'a\nb\n\nc' | indent }}|{{ 'a\nb' | indent(2, true) }}|{{ 'a\n\nb' | indent(1, blank=true) }}|{{ 'a\n' | indent('>>') }}
{{ 5 | string }}{{ none | string }}{{ 1.0 | string + 'x' }}{{ l | string | length }}{{ 'a' | safe }}{{ [1] | safe | length }}
{{ d | tojson }} {{ d | tojson(indent=2) }} {{ [] | tojson(indent=2) }}{{ {} | tojson(indent=2) }} {{ (1, 'é') | tojson }} {{ 'é"\\\n\x01/<>&' | tojson }} {{ none | tojson }} {{ 1.0 | tojson }} {{ 1e20 | tojson }}
{{ u | tojson(ensure_ascii=true) }} {{ '\x7f' | tojson(ensure_ascii=true) }} {{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }} {{ [1, {'a': 2}] | tojson(separators=(',', ':')) }} {{ {1: 2, none: 3, true: 4, 1.5: 5} | tojson }} {{ [[1], []] | tojson(indent=4) }}
{{ u0 | tojson }}
{{ namespace(a=1) | tojson }}
{{ n is number }}{{ t is number }}{{ t is boolean }}{{ n is integer }}{{ t is integer }}{{ f is float }}{{ a is string }}{{ d is mapping }}{{ l is mapping }}{{ l is sequence }}{{ a is sequence }}{{ d is sequence }}{{ n is sequence }}{{ a is iterable }}{{ n is iterable }}{{ u0 is iterable }}{{ u0 is sequence }}{{ z is none }}{{ u0 is none }}{{ t is true }}{{ 1 is true }}{{ e is false }}{{ false is false }}
{{ 4 is divisibleby 2 }}{{ 4 is divisibleby(3) }}{{ 3 is odd }}{{ 3 is even }}{{ n is eq 7 }}{{ n is not eq 7 }}{{ n is gt 3 }}{{ n is ge(7) }}{{ 'a' is in ['a'] }}{{ 'a' is lower }}{{ 'aB' is upper }}{{ z is sameas none }}{{ n is not defined }}{{ not n is defined }}
{{ range(3) | list }}{{ range(1, 4) | list }}{{ range(5, 0, -2) | list }}{{ range(0) | list }}{% for i in range(2) %}{{ i }}{% endfor %}
{{ range(0, 1, 0) }}
{{ dict(a=1, b=2) }}{{ dict({'x': 1}) }}{{ namespace({'x': 1}).x }}
{% set x = [] %}{% set _ = x.append(1) %}{% set _ = x.append(2) %}{{ x }}{{ x.pop() }}{{ x.pop(0) }}{{ x }}{% set _ = x.extend([5, 6]) %}{% set _ = x.insert(0, 4) %}{{ x }}{{ x.index(5) }}{{ x.count(6) }}
{% set x = [] %}{{ x.pop() }}
{{ {1: 'a', '1': 'b', true: 'c'} }}{{ {(1, 2): 3}[(1, 2)] }}{{ {'a': 1,} }}{{ [1, 2,] }}
{{ strftime_now('%d %b %Y') }} {{ strftime_now('%Y-%m-%d %H:%M:%S %A %B %j %I %p %y %%') }}
{{ raise_exception('no') }}
{{ 'a' is string and n is number }} {{ (n is number) | string }} {{ n if n is defined else 3 }} {{ d.b + 1 if d.b else 0 }}
{{ ('a' if t else 'b') ~ 'c' }}{{ 'a' ~ 1 + 2 }}
{{ [1, 2, 3][1:] | first }}{{ (l | first) }}{{ l[n - 7] }}{{ d['b' if t else 'A'] }}{{ w[0].c['k'] }}{{ w | length - 1 }}
{% if not (n == 7 and t) or e %}a{% else %}b{% endif %}{% if n is not none and n %}c{% endif %}{% if 'a' in 'abc' and not 'q' in 'abc' %}d{% endif %}
{%- for m in w -%}{%- if loop.first or (w[loop.index0 - 1].r != 'tool') -%}[{%- endif -%}{{ m.r }}{%- endfor -%}
{{ "a" if "b" in {"b": 1} else "c" }}{{ {"a": {"b": [1, {"c": 2}]}}["a"].b[1].c }}
{{ [] }}{{ {} }}{{ '' }}{{ [[]] }}{{ {'a': {}} }}
{{ 99999999999 * 1000 }} {{ 1 - 2 }} {{ 9223372036854775807 }}
""".strip("\n").split("\n")


def main():
    rows = []
    for line in SNIPPETS:
        # \n in the list outside of {{ }} and {% %} stands for a line end of the template.
        source = line.replace("\\n", "\n") if line.startswith(("x\\n", " ", "{{ 1 }}\\n")) else line
        try:
            rows.append([source, render(environment().from_string(source), [], VARIABLES)])
        except Exception as error:  # a syntax error in the list itself
            sys.exit(f"{source}: {error}")
    rows_text = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    print(f'{{"variables": {json.dumps(VARIABLES, ensure_ascii=False)},\n"rows": [\n{rows_text}\n]}}')


if __name__ == "__main__":
    main()
