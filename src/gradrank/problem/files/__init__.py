"""Data matrices read from the user's files, with every fault of a file told in one line."""

from gradrank.problem.files.reading import read_table

__all__ = ["read_table"]
