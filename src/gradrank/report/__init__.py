"""Figures, tables and self-contained pages; knows names and arrays, not the stages that made them."""
