"""One self-contained HTML page: text, tables and figures in a single file that needs no network."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field

from jinja2 import Environment, PackageLoader, select_autoescape

from gradrank.report.tables import Table


@dataclass(frozen=True)
class Picture:
    """A PNG with its caption."""

    png: bytes
    caption: str

    @property
    def source(self) -> str:
        """The image as a data URI."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode()


@dataclass(frozen=True)
class Section:
    """A part of a page: paragraphs, then tables, pictures and preformatted text."""

    heading: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    code: str = ""


@dataclass(frozen=True)
class Page:
    """A whole page."""

    title: str
    subtitle: str
    sections: Sequence[Section] = field(default_factory=tuple)

    def html(self) -> str:
        """Return the page as HTML; every text is escaped."""
        environment = Environment(
            loader=PackageLoader("gradrank.report"),
            autoescape=select_autoescape(default=True),
            trim_blocks=True,
            lstrip_blocks=True,
        )
        return environment.get_template("page.html.j2").render(page=self)
