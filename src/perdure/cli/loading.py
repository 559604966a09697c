"""Finding the user's app: `module:app`, with the working directory on the path as Python itself has it."""

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.errors import Malformed, Misuse, PerdureError

if TYPE_CHECKING:
    from perdure.app import App


def load_app(target: str) -> "App":
    """The app that `module:app` names. Raises `Malformed` or `Misuse`, saying what is missing and where."""
    from perdure.app import App

    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute or not all(part.isidentifier() for part in module_name.split(".")):
        raise Malformed(f"{target!r} is not MODULE:APP, such as shop.tasks:app{_meant(target)}", field="app")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = _imported(module_name, folder, _meant(target))
    value: object = module
    for name in attribute.split("."):
        if not hasattr(value, name):
            raise Misuse(
                f"module {module_name} has no {attribute!r}{_apps_of(module_name, module)}", module=module_name
            )
        value = getattr(value, name)
    if not isinstance(value, App):
        raise Misuse(
            f"{target} is of type {type(value).__name__}, not a perdure.App{_apps_of(module_name, module)}",
            module=module_name,
        )
    return value


def _meant(target: str) -> str:
    """What to write instead of the name of a file, as the end of a sentence; empty where it is none."""
    path, _, attribute = target.partition(":")
    module_name = path.removesuffix(".py").removeprefix("./").replace("/", ".").replace("\\", ".")
    if module_name == path or not all(part.isidentifier() for part in module_name.split(".")):
        return ""
    return f"; was {module_name}:{attribute or 'app'} meant?"


def _apps_of(module_name: str, module: object) -> str:
    """What to write instead, as the end of a sentence."""
    from perdure.app import App

    apps = sorted(name for name, each in vars(module).items() if isinstance(each, App))
    return f"; it has {', '.join(f'{module_name}:{each}' for each in apps)}" if apps else ""


def _imported(module_name: str, folder: str, meant: str) -> object:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # The module itself is missing, or a package above it; what it imports in turn is the user's own error.
        missing = error.name or ""
        if module_name == missing or module_name.startswith(missing + "."):
            where = f"there is no module {missing!r} in {folder} or on the Python path"
            raise Misuse(f"{where}{meant or '; run from the folder that holds it'}", module=module_name) from None
        raise Misuse(_import_failure(module_name, error), module=module_name) from error
    except PerdureError:
        raise  # It says what is wrong and what to do about it.
    except Exception as error:
        raise Misuse(_import_failure(module_name, error), module=module_name) from error


def _import_failure(module_name: str, error: BaseException) -> str:
    place = ""
    trace = error.__traceback__
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        if not filename.startswith("<") and filename != __file__:
            place = f" ({filename}:{trace.tb_lineno})"
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        place = f" ({error.filename}:{error.lineno})"
    return f"module {module_name} cannot be imported: {type(error).__name__}: {error}{place}"
