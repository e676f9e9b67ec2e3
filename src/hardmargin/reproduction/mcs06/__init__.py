"""The tables and figures of MCS-06."""
