"""The description of the service as one HTML page without scripts, which needs nothing from the network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

SHORT_LIST: Final = re.compile(r"\[[^\[\]{}]*\]")
STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; color: #101316; background: #fcfbf8; }
h1 { font-family: Georgia, serif; line-height: 1.2; }
h2 { margin-top: 2.5rem; font-family: ui-monospace, monospace; font-size: 1.05rem; overflow-wrap: anywhere; }
h2 span { color: #2f5d50; }
code, pre { font-family: ui-monospace, monospace; font-size: .875rem; }
pre { background: #f1efe8; padding: .75rem; overflow-x: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #d9d5ca; vertical-align: top; }
a { color: #2f5d50; }
@media (prefers-color-scheme: dark) {
  body { color: #e8e6e0; background: #16191d; }
  pre { background: #20252b; }
  h2 span, a { color: #8fd0bb; }
  th, td { border-color: #3a4149; }
}
"""


def reference_page(schema: Mapping[str, Any]) -> str:
    """All addresses of an OpenAPI description, with their parameters and examples."""
    info = schema["info"]
    parts = "\n".join(section(method, path, operation, schema) for path, methods in schema["paths"].items() for method, operation in methods.items())
    title = f"{escape(info['title'])}, HTTP service"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1><p>{escape(info['description'])}</p>"
        f'<p>Version {escape(info["version"])}. For programs: <a href="openapi.json">openapi.json</a> (OpenAPI).</p>\n{parts}\n</body></html>\n'
    )


def section(method: str, path: str, operation: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """One address with one method."""
    rows = "".join(parameter_row(one) for one in operation.get("parameters", ()))
    table = f'<div class="scroll"><table><tr><th>parameter</th><th>in</th><th>takes</th><th>meaning</th></tr>{rows}</table></div>' if rows else ""
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    sent = example("Body", resolved(body, schema).get("example")) if body else ""
    answer = operation.get("responses", {}).get("200", {}).get("content", {}).get("application/json", {}).get("example")
    words = f"<p><strong>{escape(operation.get('summary', ''))}.</strong> {escape(operation.get('description', ''))}</p>"
    return f"<section><h2><span>{escape(method.upper())}</span> {escape(path)}</h2>{words}{table}{sent}{example('Answer', answer)}</section>"


def parameter_row(parameter: Mapping[str, Any]) -> str:
    kind = parameter["schema"]
    name = f"<code>{escape(parameter['name'])}</code>{' (required)' if parameter.get('required') else ''}"
    cells = (name, escape(parameter["in"]), escape("; ".join(limits(kind))), escape(parameter.get("description", kind.get("description", ""))))
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def limits(kind: Mapping[str, Any]) -> Iterator[str]:
    """What a parameter may be, in a few words."""
    several = [one for one in kind.get("anyOf", (kind,)) if one.get("type") != "null"]
    one = several[0] if several else kind
    yield (
        ", ".join(map(str, one["enum"]))
        if "enum" in one
        else {"string": "text", "integer": "number", "array": "may be repeated"}.get(one.get("type", ""), "value")
    )
    bounds = [f"{words} {one[key]:,}" for key, words in (("minimum", "from"), ("maximum", "to"), ("maxLength", "at most")) if key in one]
    if bounds:
        yield f"{' '.join(bounds)}{' characters' if 'maxLength' in one else ''}"
    if kind.get("default") not in (None, []):
        yield f"default {kind['default']}"


def resolved(kind: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part of the description, or what its reference points to."""
    if "$ref" not in kind:
        return kind
    found: Mapping[str, Any] = schema["components"]["schemas"][kind["$ref"].rpartition("/")[2]]
    return found


def example(heading: str, value: Any) -> str:
    """A value as indented JSON, with lists of plain values on one line."""
    if value is None:
        return ""
    words = SHORT_LIST.sub(lambda found: " ".join(found.group().split()).replace("[ ", "[").replace(" ]", "]"), json.dumps(value, indent=2))
    return f"<p>{heading}, for example:</p><pre>{escape(words)}</pre>"
