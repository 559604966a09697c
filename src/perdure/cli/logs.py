"""Where the log lines of a long-running command go: standard error, as text or JSON."""

import json
import logging
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perdure.settings import Settings

TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON: at, level, logger, message, and the error if there is one."""
        line = {
            "at": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class Named(logging.Filter):
    """Lines of the HTTP server under a name that does not look like an error: it calls its own `uvicorn.error`."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every line through."""
        if record.name == "uvicorn.error":
            record.name = "uvicorn"
        return True


def configure(settings: "Settings", *, as_json: bool = False) -> None:
    """Send the log lines of this process to standard error, as the settings say; as JSON if asked to."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json or settings.log_format == "json" else logging.Formatter(TEXT))
    handler.addFilter(Named())
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler])
