"""Check that the pages of a built site load nothing from other sites, so that they work offline.

    python tools/check_site.py build/docs

Links to other sites are allowed. Scripts, styles, fonts, pictures and frames from there are not.
"""

import argparse
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

#: Attributes with an address that a browser loads by itself; `link` does so for some relations.
LOADED = {"src", "srcset", "poster", "data", "xlink:href"}
RELATIONS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "manifest"}
ELSEWHERE = re.compile(r"\s*(?:https?:)?//", re.IGNORECASE)
IN_STYLES = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s;]+)""", re.IGNORECASE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, help="folder of the built site")
    site = parser.parse_args().site
    found = [(file.relative_to(site), address) for file, address in loaded_from_elsewhere(site)]
    for file, address in found:
        print(f"{file}: loads {address}", file=sys.stderr)
    return int(bool(found))


def loaded_from_elsewhere(site: Path) -> list[tuple[Path, str]]:
    """All files of a site that load something from another site, each with the address."""
    pages, styles = sorted(site.rglob("*.html")), sorted(site.rglob("*.css"))
    if not pages:
        raise FileNotFoundError(f"There are no pages in {site}")
    found = [(page, address) for page in pages for address in addresses_in(read(page))]
    return found + [(file, address) for file in styles for address in IN_STYLES.findall(read(file))]


def addresses_in(page: str) -> list[str]:
    """What a page loads from other sites."""
    reader = PageReader()
    reader.feed(page)
    return reader.addresses


class PageReader(HTMLParser):
    """Collects the addresses on other sites that a browser loads with a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        loaded = [value for name, value in known.items() if name in LOADED]
        if tag == "link" and RELATIONS & set(known.get("rel", "").lower().split()):
            loaded.append(known.get("href", ""))
        self.addresses += [value for value in loaded if ELSEWHERE.match(value)]
        self.addresses += IN_STYLES.findall(known.get("style", ""))
        self._in_style = tag == "style"

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.addresses += IN_STYLES.findall(data)

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False


def read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


if __name__ == "__main__":
    sys.exit(main())
