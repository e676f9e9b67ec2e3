"""The tables and figures of TNN-08."""
