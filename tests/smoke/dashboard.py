"""What the tests of the dashboard share: browsers, a node, the opened page.

SMOKE_CHROMIUM names Chromium; without it the tests are skipped. SMOKE_FIREFOX names a Firefox of Debian or Mozilla: then they run in it, too.
SMOKE_SHOTS names a directory for screenshots.
"""

import contextlib
import os
import shutil
import tempfile

import pytest

from conftest import connect
from node import OwnNode

CHROMIUM = os.environ.get("SMOKE_CHROMIUM") or shutil.which("chromium")
FIREFOX = os.environ.get("SMOKE_FIREFOX")
BROWSERS = ["chromium", *(["firefox"] if FIREFOX else [])]

needs_browser = pytest.mark.skipif(not CHROMIUM, reason="no Chromium")

ROWS = 120

# By their names in the navigation.
VIEWS = {
    "Overview": "overview",
    "Cluster": "cluster",
    "Advice": "advice",
    "I/O": "io",
    "Statements": "statements",
    "Tables": "tables",
    "Schema": "schema",
    "Query": "query",
}

# The sum of `body {}`, a style that Playwright adds for a screenshot in Firefox. The policy of the page refuses it, and Firefox says so.
EMPTY_STYLE = "sha256-YjaKGiklmzC6wjXA513HAMmzus8VE61XCOT+SmwNZWA="

# So that pages look the same on every machine: the fonts that Debian installs with Chromium, and no others.
FONTS = "/usr/share/fonts/truetype/dejavu"
FONT_SETTINGS = """<fontconfig>
  <dir>{fonts}</dir>
  <cachedir>{cache}</cachedir>
  <alias><family>ui-monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
  <match><edit name="family" mode="append_last"><string>DejaVu Sans</string></edit></match>
</fontconfig>
"""


@contextlib.contextmanager
def launched(name):
    """A browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as directory:
        fonts = os.path.join(directory, "fonts.conf")
        with open(fonts, "w") as file:
            file.write(FONT_SETTINGS.format(fonts=FONTS, cache=directory))
        environment = {**os.environ, "FONTCONFIG_FILE": fonts}
        if name == "firefox":
            # By WebDriver BiDi: Playwright's own builds come from no package registry.
            browser = playwright.firefox.launch(executable_path=FIREFOX, channel="moz-firefox", env=environment)
        else:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], env=environment)
        yield browser
        browser.close()


@pytest.fixture(scope="module", params=BROWSERS)
def browser(request):
    with launched(request.param) as browser:
        yield browser


@pytest.fixture(scope="module")
def served(browser, tmp_path_factory):
    """A node for the tests of a file and a browser, with a table whose rows are on disk."""
    node = OwnNode(os.environ["SMOKE_ILION"], str(tmp_path_factory.mktemp("dashboard") / "data"))
    node.start()
    with session_of(node) as session:
        session.execute("CREATE KEYSPACE seen WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE seen.things (k int PRIMARY KEY, v text)")
        insert = session.prepare("INSERT INTO seen.things (k, v) VALUES (?, ?)")
        for key in range(ROWS):
            session.execute(insert, (key, f"<b>value</b> {key}"))
        node.flush("seen")
        for key in range(ROWS):
            session.execute("SELECT v FROM seen.things WHERE k = %s", (key,))
        yield node
    node.kill()


@pytest.fixture
def page(browser, served):
    with opened(browser, served) as page:
        yield page


@contextlib.contextmanager
def opened(browser, node, hash="", width=1400, answers=None, **settings):
    """The page; there must be no errors in the console, and no requests to other places. With `answers` instead of those of the node."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
    page = context.new_page()
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)) if EMPTY_STYLE not in str(error) else None)
    # Chromium reports each refused statement as a network error.
    page.on("console", lambda line: complaints.append(line.text) if line.type == "error" and "400" not in line.text else None)
    outside = []
    page.on("request", lambda request: outside.append(request.url) if f":{node.admin_port}/" not in request.url else None)
    if answers:
        answers.give(page)
    page.goto(f"http://127.0.0.1:{node.admin_port}/{hash}")
    page.get_by_text("serving").wait_for()
    yield page
    shots = os.environ.get("SMOKE_SHOTS")
    if shots:
        name = os.environ["PYTEST_CURRENT_TEST"].split("::")[-1].split(" ")[0]
        page.screenshot(path=os.path.join(shots, f"{name}.png"))
    context.close()
    assert complaints == []
    assert [url for url in outside if not url.startswith("data:")] == []


def view(page, name):
    page.get_by_role("navigation").locator(f"a[href='#{VIEWS[name]}']", has_text=name).click()


def cells(page, place, row):
    """The cells of a row, by the heads of their columns."""
    heads = page.locator(f"{place} th").all_inner_texts()
    return dict(zip(heads, row.locator("td").all_inner_texts()))


def figure(text):
    """A number as the page shows it: 12.3 k."""
    digits, _, unit = text.partition(" ")
    return float(digits) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[unit]


@contextlib.contextmanager
def session_of(node):
    """A driver's session."""
    cluster = connect(node)
    try:
        yield cluster.connect()
    finally:
        cluster.shutdown()
