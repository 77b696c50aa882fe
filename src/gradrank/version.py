"""The version, in one place: the package, the specification files and the citation read it from here."""

__version__ = "0.1.0"
