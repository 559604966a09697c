"""What a JSON Schema cannot say, told to schemathesis: texts of our formats, names that fit together, short waits."""

import string

import schemathesis
from hypothesis import strategies as st

SHOWN = st.text(alphabet=string.ascii_letters + string.digits + "-_.:äß", min_size=1, max_size=100)
schemathesis.openapi.format("title", SHOWN)
schemathesis.openapi.format("key", SHOWN)
schemathesis.openapi.format("cursor", st.just(""))


@schemathesis.hook
def map_body(context, body):
    """Tasks of a job have different names and depend on nobody; nobody waits."""
    if isinstance(body, dict) and isinstance(body.get("wait"), int | float) and 0 <= body["wait"] <= 30:
        body["wait"] = 0
    if isinstance(body, dict) and isinstance(body.get("tasks"), list) and context.operation.path == "/v1/jobs":
        for number, task in enumerate(body["tasks"]):
            if isinstance(task, dict):
                for name in ("bindings", "depends_on", "idempotency_key"):
                    task.pop(name, None)
                if isinstance(task.get("name"), str) and task["name"]:
                    task["name"] = f"{number}{task['name']}"[:200]
    return body


@schemathesis.hook
def map_query(context, query):
    """Nobody waits for hints."""
    if isinstance(query, dict) and isinstance(query.get("wait"), int | float) and 0 <= query["wait"] <= 30:
        query["wait"] = 0
    return query
