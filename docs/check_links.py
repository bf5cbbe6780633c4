"""Check a site that is built: every link within it leads to a file, and to a place in it that is there."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Where the links of a page lead, and the places in it that can be led to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element leads to, and its name."""
        found = {name: value or "" for name, value in attrs}
        self.links += [found[name] for name in ("href", "src") if name in found]
        self.places |= {found[name] for name in ("id", "name") if name in found}


def check(folder: Path) -> list[str]:
    """What leads nowhere, as `page: link`."""
    pages = {path.resolve(): Page(path) for path in folder.rglob("*.html")}
    wrong = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or not link:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            place = unquote(parts.fragment)
            if not target.exists() or (place and target in pages and place not in pages[target].places):
                wrong.append(f"{path.relative_to(folder.resolve())}: {link}")
    return wrong


def main() -> None:
    """Check the folder that is named; ends with 1 where a link leads nowhere."""
    wrong = check(Path(sys.argv[1]))
    print("\n".join(wrong) or "every link within the site leads somewhere")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
