"""Where files of earlier versions look for a type that has moved."""

from hardmargin.scaling import Scaling as Scaling
