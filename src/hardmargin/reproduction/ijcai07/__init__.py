"""The tables and figures of IJCAI-07."""
