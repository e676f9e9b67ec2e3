"""All parts, by name."""

from __future__ import annotations

from hardmargin.reproduction.esann99 import parts as esann99
from hardmargin.reproduction.ijcai07 import parts as ijcai07
from hardmargin.reproduction.mcs06 import parts as mcs06
from hardmargin.reproduction.parts import Part
from hardmargin.reproduction.tnn08 import parts as tnn08

__all__ = ["PARTS"]

PARTS: dict[str, Part] = {
    part.name: part for module in (ijcai07, mcs06, tnn08, esann99) for part in module.PARTS
}
