"""All parts there are, by name."""

from __future__ import annotations

from . import esann99, ijcai07, mcs06, tnn08
from .parts import Part

__all__ = ["PARTS"]

PARTS: dict[str, Part] = {
    part.name: part for module in (ijcai07, mcs06, tnn08, esann99) for part in module.PARTS
}
