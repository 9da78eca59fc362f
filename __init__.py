"""isoform takes a tensor program, finds faster programs that compute the same thing, proves it, and
runs them.

Example:
    import isoform

    program = isoform.load("model.onnx")
    better = isoform.optimize(program, target="cpu", budget=60)
    session = isoform.compile(better)
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from .compiler.version import VERSION as __version__

if TYPE_CHECKING:
    from .compiler import torch_backend as torch  # noqa: F401  # pyright: ignore[reportUnusedImport]
    from .compiler.api import (
        Program,
        Session,
        compile,
        from_torch,
        load,
        open,
        optimize,
        parse,
        save,
    )
    from .compiler.reports.check_certificate import check_certificate
    from .dialects.builder import GraphBuilder
    from .dialects.errors import UserError


__all__ = [
    "GraphBuilder",
    "Program",
    "Session",
    "UserError",
    "__version__",
    "check_certificate",
    "compile",
    "from_torch",
    "load",
    "open",
    "optimize",
    "parse",
    "save",
]

# `import isoform` costs nothing: each name is imported from its module when it is first used.
_HOMES = {
    "GraphBuilder": ".dialects.builder",
    "Program": ".compiler.api",
    "Session": ".compiler.api",
    "UserError": ".dialects.errors",
    "check_certificate": ".compiler.reports.check_certificate",
    "compile": ".compiler.api",
    "from_torch": ".compiler.api",
    "load": ".compiler.api",
    "open": ".compiler.api",
    "optimize": ".compiler.api",
    "parse": ".compiler.api",
    "save": ".compiler.api",
}


def __getattr__(name: str) -> object:
    """Import a public name from its home on first use."""
    if name == "torch":
        return _torch()
    if name not in _HOMES:
        raise AttributeError(f"module 'isoform' has no attribute '{name}'")
    value: object = getattr(import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value


def _torch() -> object:
    """The package for PyTorch. Raises UserError if torch is not installed."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:  # a folder of this name is no torch
        from .dialects.errors import UserError

        raise UserError("torch is not installed", hint="pip install 'isoform[torch]'")
    return globals().setdefault("torch", import_module(".compiler.torch_backend", __name__))


def __dir__() -> list[str]:
    """List the public names without importing them."""
    return sorted({*globals(), *__all__})
