"""Writes docs/metrics.md from `perdure.telemetry.metrics`. Run it with `make docs`."""

from pathlib import Path

from perdure.telemetry.metrics import FAMILIES, LABEL_VALUES_MAX, OTHER, Family

PAGE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"

HEAD = f"""# Metrics

This page is made from `src/perdure/telemetry/metrics.py` by `make docs`; a test compares the two. `perdure serve`
answers `GET /metrics` in the text format of Prometheus; in the roles `worker` and `sweeper` it does so where
`PERDURE_METRICS_LISTEN` says. `perdure worker` answers nothing: what its own duties end is counted nowhere. Each
process tells what went through it, so sum over processes; the gauges of queues and workers are those of the store. A
label whose values come from tasks (kind, queue) has at most {LABEL_VALUES_MAX} values; the rest is told as `{OTHER}`.

| metric | type | labels | what it tells |
|---|---|---|---|
"""


def write() -> str:
    """The whole page."""
    return HEAD + "".join(map(_line, FAMILIES))


def _line(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels) or "-"
    return f"| `{family.name}` | {family.sort} | {labels} | {family.doc} |\n"


if __name__ == "__main__":
    PAGE.write_text(write(), encoding="utf-8")
