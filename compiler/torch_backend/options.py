"""What `torch.compile(..., options={...})` may say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ...dialects.errors import UserError, did_you_mean
from ..targets.cpu_options import EFFORTS


@dataclass(frozen=True)
class BackendOptions:
    """How the backend compiles.

    Attributes:
        budget: seconds that searches may take for each program; 0 applies only the rewrites that
            never hurt.
        tolerance: relative error that an inexact algorithm (Winograd) may add.
        effort: what is measured to choose kernels, as in `isoform.compile`.
        certificate: a folder; each program's certificate is written there (needs a budget).
    """

    budget: float = 0.0
    tolerance: float = 1e-5
    effort: str = "default"
    certificate: Path | None = None

    @staticmethod
    def of(given: Mapping[str, Any] | None) -> BackendOptions:
        """Check a user's options. Raises UserError for an unknown name or a wrong value."""
        known = [field.name for field in fields(BackendOptions)]
        values = dict(given or {})
        for name in values:
            if name not in known:
                raise UserError(
                    f"the isoform backend has no option '{name}'",
                    hint=did_you_mean(name, known) or f"options are {', '.join(known)}",
                )
        for name in ("budget", "tolerance"):
            number = values.get(name, 0)
            if isinstance(number, bool) or not isinstance(number, (int, float)) or not number >= 0:
                raise UserError(f"option '{name}' is a number from 0 up", found=number)
        if values.get("effort", "default") not in EFFORTS:
            expected = ", ".join(EFFORTS)
            raise UserError("unknown effort", expected=expected, found=values["effort"])
        folder = values.get("certificate")
        if folder is not None and not isinstance(folder, (str, Path)):
            raise UserError("option 'certificate' is a folder", found=folder)
        if folder is not None:
            values["certificate"] = Path(folder)
            values.setdefault("budget", 10.0)
        return BackendOptions(**values)
