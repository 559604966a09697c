"""The API reference as one page of HTML that needs nothing else: no network, no scripts."""

from html import escape
from typing import Any

import msgspec

STYLE = """
:root { color-scheme: light dark; font-family: system-ui, sans-serif; line-height: 1.5 }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
code, pre { font-family: ui-monospace, monospace; font-size: .9em }
pre { overflow: auto; padding: .6rem; border: 1px solid #8884; border-radius: .4rem }
details { border: 1px solid #8884; border-radius: .4rem; padding: .4rem .8rem; margin: .4rem 0 }
summary { cursor: pointer }
table { border-collapse: collapse; margin: .5rem 0 }
td, th { text-align: left; vertical-align: top; padding: .15rem .8rem .15rem 0 }
.method { display: inline-block; min-width: 4.5rem; font-weight: 600 }
"""


def docs_page(description: dict[str, Any]) -> bytes:
    """The page for an OpenAPI document."""
    groups: dict[str, list[str]] = {}
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            groups.setdefault(operation["tags"][0], []).append(_operation(method, path, operation))
    parts = [f"<h2>{escape(group)}</h2>{''.join(shown)}" for group, shown in groups.items()]
    schemas = "".join(_schema(name, each) for name, each in description["components"]["schemas"].items())
    info = description["info"]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])} API</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info['description'])}</p>"
        '<p><a href="openapi.json">OpenAPI document</a></p>'
        f"{''.join(parts)}<h2>Bodies</h2>{schemas}</body></html>"
    ).encode()


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(each['name'])}</code></td><td>{escape(each['in'])}"
        f"{', required' if each['required'] else ''}</td><td><code>{escape(_short(each['schema']))}</code></td></tr>"
        for each in operation.get("parameters", ())
    )
    body = operation.get("requestBody")
    answers = "".join(
        f"<tr><td>{escape(status)}</td><td>{_linked(answer)}</td><td>{escape(answer['description'])}</td></tr>"
        for status, answer in operation["responses"].items()
    )
    permission = operation.get("x-permission")
    return (
        f'<details id="{escape(operation["operationId"])}"><summary><span class="method">{method.upper()}</span> '
        f"<code>{escape(path)}</code> {escape(operation['summary'])}</summary>"
        + (f"<p>Permission: <code>{escape(permission)}</code></p>" if permission else "")
        + (f"<table>{rows}</table>" if rows else "")
        + (f"<p>Body: {_linked(body)}{'' if body['required'] else ' (optional)'}</p>" if body else "")
        + f"<table>{answers}</table></details>"
    )


def _linked(holder: dict[str, Any]) -> str:
    shown = []
    for media, content in holder.get("content", {}).items():
        names = _names(content["schema"])
        links = " or ".join(f'<a href="#schema-{escape(name)}">{escape(name)}</a>' for name in names)
        shown.append(links or escape(media))
    return ", ".join(shown)


def _names(schema: Any) -> list[str]:
    """The bodies that a schema names, in order."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            return [schema["$ref"].rpartition("/")[2]]
        return [name for each in schema.values() for name in _names(each)]
    return [name for each in schema for name in _names(each)] if isinstance(schema, list) else []


def _schema(name: str, schema: dict[str, Any]) -> str:
    text = msgspec.json.format(msgspec.json.encode(schema), indent=2).decode()
    return f'<details id="schema-{escape(name)}"><summary>{escape(name)}</summary><pre>{escape(text)}</pre></details>'


def _short(schema: dict[str, Any]) -> str:
    return msgspec.json.encode({name: each for name, each in schema.items() if name != "pattern"}).decode()
