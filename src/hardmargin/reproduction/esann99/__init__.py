"""The tables and figures of ESANN-99."""
