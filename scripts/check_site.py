"""Checks the built site: every link of a page leads to a page, a file or a heading that is there.

    python3 scripts/check_site.py target/site
"""

import os
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], {""}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value and tag != "link":
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def read_pages(root):
    """Each page by its path."""
    pages = {}
    for directory, _, files in os.walk(root):
        for name in files:
            path = os.path.join(directory, name)
            # This page holds all others, and its links are theirs; the other one is for the server of the site.
            if name.endswith(".html") and name not in ("print.html", "404.html", "toc.html"):
                with open(path, encoding="utf-8") as file:
                    pages[os.path.normpath(path)] = Page(file.read())
    return pages


def broken(root, pages):
    """The links that lead nowhere, each with its page."""
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            base = root if parts.path.startswith("/") else os.path.dirname(path)
            target = os.path.normpath(os.path.join(base, unquote(parts.path).lstrip("/"))) if parts.path else path
            if target in pages:
                if unquote(parts.fragment) not in pages[target].anchors:
                    yield path, link
            elif not os.path.exists(target):
                yield path, link


def main():
    root = os.path.normpath(sys.argv[1])
    pages = read_pages(root)
    wrong = sorted(set(broken(root, pages)))
    for path, link in wrong:
        print(f"{os.path.relpath(path, root)}: {link} leads nowhere")
    count = sum(len(page.links) for page in pages.values())
    print(f"{count} links of {len(pages)} pages were checked, {len(wrong)} are broken")
    if len(pages) < 20:
        sys.exit("the site is not complete")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
