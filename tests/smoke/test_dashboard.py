"""The dashboard in a real browser.

Needs Chromium: the tests are skipped unless SMOKE_CHROMIUM names it. SMOKE_SHOTS names a directory for screenshots.
"""

import contextlib
import os
import re
import shutil
import time

import pytest

from conftest import connect
from node import OwnNode

CHROMIUM = os.environ.get("SMOKE_CHROMIUM") or shutil.which("chromium")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium")

ROWS = 120


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A node for these tests, with a table whose rows are on disk."""
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


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser, served):
    """The opened page; there must be no errors in the console."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    # Chromium reports each refused statement as a network error.
    page.on("console", lambda line: complaints.append(line.text) if line.type == "error" and "400" not in line.text else None)
    outside = []
    page.on("request", lambda request: outside.append(request.url) if f":{served.admin_port}/" not in request.url else None)
    page.goto(f"http://127.0.0.1:{served.admin_port}/")
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
    page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()


@contextlib.contextmanager
def session_of(node):
    """A driver's session."""
    cluster = connect(node)
    try:
        yield cluster.connect()
    finally:
        cluster.shutdown()


def test_the_overview_draws_what_goes_on(page, served):
    from playwright.sync_api import expect

    expect(page.locator("#tiles dd")).to_have_count(8)
    expect(page.locator("#chart-requests")).to_have_attribute("aria-label", re.compile(r"now: query \d"))
    # The chart has latencies only for statements that run now.
    with session_of(served) as session:
        deadline = time.monotonic() + 30
        while not re.search(r"p50 \d", page.locator("#chart-latency").get_attribute("aria-label")):
            assert time.monotonic() < deadline
            session.execute("SELECT v FROM seen.things WHERE k = 1")
    assert re.search(r"p95 \d.* p99 \d", page.locator("#chart-latency").get_attribute("aria-label"))
    # The chart has lines, not only its frame.
    assert page.locator("#chart-memory canvas").evaluate("(canvas) => canvas.width") > 100
    assert page.locator("#caches tbody tr").count() >= 1
    for cache in ["chunks", "keys", "counters"]:
        expect(page.locator("#caches td", has_text=cache).first).to_be_visible()
    for fact in ["commit log", "syncs of the log", "flushes", "compactions"]:
        row = page.locator("#engine tbody tr", has_text=fact).first
        assert re.search(r"\d", row.locator("td").nth(1).inner_text())
    expect(page.locator("#tasks")).to_have_text("No compaction is going on.")


def test_running_tasks_have_progress_bars(page):
    """With a made-up report: real compactions end too soon to be observed."""
    from playwright.sync_api import expect

    task = {"id": "1", "kind": "Compaction", "keyspace": "seen", "table": "things", "sstables": 4}
    report = {"running": [{**task, "done_bytes": 3 << 20, "total_bytes": 4 << 20}], "pending": []}
    page.route("**/admin/compactions", lambda route: route.fulfill(json=report))
    bar = page.get_by_role("progressbar", name="Compaction of seen.things")
    bar.wait_for()
    assert bar.evaluate("(bar) => bar.value / bar.max") == 0.75
    expect(page.locator("#tasks")).to_contain_text("4 SSTables")
    expect(page.locator("#tasks")).to_contain_text("3.0 MiB of 4.0 MiB")


def test_the_spectrogram_lists_the_slowest_reads_of_what_is_brushed(page):
    view(page, "I/O")
    page.locator("#io-summary").get_by_text("reads, writes and syncs").wait_for()
    page.select_option("#io-window", "3000")
    box = page.locator("#spectrogram").bounding_box()
    page.mouse.move(box["x"] + 70, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 10, box["y"] + box["height"] - 30, steps=4)
    page.mouse.up()
    page.locator("#slowest td", has_text="seen.things").first.wait_for()
    # With the statement that read.
    page.locator("#slowest td", has_text="SELECT v FROM seen.things WHERE k = ?").first.wait_for()
    assert page.locator("#slowest tbody tr").count() >= 1
    # The picture moves with time.
    def picture():
        return page.locator("#spectrogram").evaluate("(canvas) => canvas.toDataURL()")

    before = picture()
    deadline = time.monotonic() + 30
    while picture() == before:
        assert time.monotonic() < deadline
        page.wait_for_timeout(200)
    # Without any kind of I/O the picture is empty.
    for box in page.locator("#io-kinds input").all():
        box.uncheck()
    page.get_by_text("No I/O in this window.").wait_for()


def test_the_spectrogram_is_used_by_the_keyboard(page):
    view(page, "I/O")
    page.locator("#io-summary").get_by_text("reads, writes and syncs").wait_for()
    page.select_option("#io-window", "3000")
    page.locator("#spectrogram").focus()
    page.keyboard.press("ArrowRight")
    for _ in range(80):
        page.keyboard.press("Control+Shift+ArrowLeft")
    for _ in range(6):
        page.keyboard.press("Control+Shift+ArrowDown")
    page.keyboard.press("Enter")
    page.locator("#slowest caption").wait_for()
    assert "Spectrogram" in page.locator("#spectrogram").get_attribute("aria-label")


def test_a_query_is_typed_run_and_paged(page):
    view(page, "Query")
    page.get_by_label("CQL statement").fill("SELECT k, v FROM things")
    page.get_by_label("Keyspace").fill("seen")
    page.get_by_label("Rows a page").fill("50")
    page.get_by_label("CQL statement").press("Control+Enter")
    page.get_by_text("rows 1 to 50").wait_for()
    # Values are shown as text, not as HTML.
    assert re.search(r"<b>value</b> \d+", page.locator("#query-result").inner_text())
    page.get_by_role("button", name="Next page").click()
    page.get_by_text("rows 51 to 100").wait_for()
    page.get_by_role("button", name="Next page").click()
    page.get_by_text(f"rows 101 to {ROWS}").wait_for()
    assert page.get_by_role("button", name="Next page").is_disabled()
    # A click on the column sorts, another click sorts the other way.
    page.get_by_role("button", name="k (int)").click()
    keys = [int(text) for text in page.locator("#query-result tbody td:first-child").all_inner_texts()]
    assert keys == sorted(keys, reverse=True)


def test_a_query_tells_its_steps_and_its_plan(page):
    view(page, "Query")
    page.get_by_label("CQL statement").fill("SELECT v FROM seen.things WHERE k = 7")
    page.get_by_label("with its steps").check()
    page.get_by_role("button", name="Run", exact=True).click()
    page.locator("#query-steps td", has_text="sstable").first.wait_for()
    page.get_by_role("button", name="Explain", exact=True).click()
    page.locator("#query-result th", has_text="step").wait_for()
    page.get_by_role("button", name="Explain and run").click()
    page.locator("#query-result td", has_text="sstables_considered").wait_for()


def test_a_wrong_statement_is_answered_with_the_reason(page):
    view(page, "Query")
    page.get_by_label("CQL statement").fill("SELEC nothing")
    page.get_by_role("button", name="Run", exact=True).click()
    page.locator("#query-error").get_by_text("SELEC").wait_for()


def test_statements_are_listed_with_what_they_cost_and_counted_anew(page):
    view(page, "Statements")
    row = page.locator("#statements-table tbody tr", has_text="INSERT INTO seen.things")
    row.wait_for()
    assert row.locator("td").nth(1).inner_text() == str(ROWS)
    # Sorted by bytes read per byte of answers, largest first.
    page.get_by_role("button", name="read per byte of answers").click()
    column = page.locator("#statements-table th[aria-sort=descending]")
    assert column.inner_text() == "read per byte of answers"
    at = page.locator("#statements-table th").all_inner_texts().index("read per byte of answers")
    shown = page.locator(f"#statements-table tbody td:nth-child({at + 1})").all_inner_texts()
    found = [float(text) for text in shown]
    assert found == sorted(found, reverse=True) and found[0] > 0
    page.get_by_role("button", name="Count from now on").click()
    row.wait_for(state="detached")


def test_statements_of_the_query_box_are_counted(page):
    view(page, "Query")
    page.get_by_label("CQL statement").fill("SELECT v FROM seen.things WHERE k = 3 AND v = 'boxed' ALLOW FILTERING")
    page.get_by_role("button", name="Run", exact=True).click()
    page.locator("#query-status").get_by_text("rows").wait_for()
    view(page, "Statements")
    shape = "SELECT v FROM seen.things WHERE k = ? AND v = ? ALLOW FILTERING"
    row = page.locator("#statements-table tbody tr", has_text=shape)
    row.wait_for()
    assert row.locator("td").nth(1).inner_text() == "1"


def test_the_schema_is_browsed(page):
    view(page, "Schema")
    page.get_by_role("button", name="things", exact=True).click()
    page.locator("#schema-text").get_by_text("CREATE TABLE seen.things").wait_for()


def test_tables_are_listed_with_what_they_take(page):
    view(page, "Tables")
    row = page.locator("#tables-table tbody tr", has_text="things")
    row.wait_for()
    cells = dict(zip(page.locator("#tables-table th").all_inner_texts(), row.locator("td").all_inner_texts()))
    assert (cells["keyspace"], cells["table"]) == ("seen", "things")
    assert re.fullmatch(r"[\d.]+ (B|KiB)", cells["on disk"])
    assert (cells["SSTables"], cells["by level"], cells["compactions due"]) == ("1", "L0: 1", "0")
    assert int(cells["partitions, about"]) == ROWS


def test_dark_and_light_are_chosen_and_kept(page):
    def back():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    button = page.locator("#theme")
    button.click()
    light = back()
    button.click()
    dark = back()
    assert light != dark
    page.reload()
    page.get_by_text("Theme: dark").wait_for()
    assert back() == dark


def test_everything_has_a_name_and_can_be_reached_by_tab(page):
    for name in ["Overview", "I/O", "Statements", "Tables", "Schema", "Query"]:
        view(page, name)
        unnamed = page.evaluate(
            """() => [...document.querySelectorAll('button, a, input, select, textarea')]
                .filter((part) => part.offsetParent !== null)
                .filter((part) => !(part.textContent.trim() || part.getAttribute('aria-label') || part.labels?.length))
                .map((part) => part.outerHTML)"""
        )
        assert unnamed == [], name
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement !== document.body")


def test_a_token_is_asked_for_and_taken(browser, tmp_path):
    token = tmp_path / "token"
    token.write_text("open sesame\n".replace(" ", "-"))
    node = OwnNode(os.environ["SMOKE_ILION"], str(tmp_path / "data"), [f"admin_token_file={token}"])
    node.start()
    try:
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{node.admin_port}/")
        page.get_by_label("This node asks for its token").fill("wrong")
        page.get_by_role("button", name="Show it").click()
        page.locator("#token-form").wait_for(state="visible")
        page.get_by_label("This node asks for its token").fill("open-sesame")
        page.get_by_role("button", name="Show it").click()
        page.get_by_text("serving").wait_for()
        page.close()
    finally:
        node.kill()


def test_a_login_is_asked_for_and_decides_what_is_shown(browser, tmp_path):
    settings = ("authenticator=PasswordAuthenticator", "authorizer=CassandraAuthorizer")
    node = OwnNode(
        os.environ["SMOKE_ILION"], str(tmp_path / "data"), settings, {"ILION_SUPERUSER_PASSWORD": "root's"}
    )
    node.start()
    context = browser.new_context()
    try:
        page = context.new_page()
        blocked = []
        page.on("console", lambda line: blocked.append(line.text) if "Content Security Policy" in line.text else None)
        page.goto(f"http://127.0.0.1:{node.admin_port}/")

        def log_in(role, password):
            page.get_by_label("Role").fill(role)
            page.get_by_label("Password").fill(password)
            page.get_by_role("button", name="Log in").click()

        def run(statement):
            view(page, "Query")
            page.get_by_label("CQL statement").fill(statement)
            page.get_by_role("button", name="Run", exact=True).click()

        log_in("cassandra", "wrong")
        page.get_by_text("Provided username cassandra and/or password are incorrect").wait_for()
        assert not page.locator("#main").is_visible()
        log_in("cassandra", "root's")
        page.get_by_text("serving").wait_for()
        assert page.evaluate("document.cookie") == ""
        run("CREATE ROLE bob WITH PASSWORD = 'bob''s' AND LOGIN = true")
        page.get_by_text("The statement answers no rows").wait_for()
        # A new page of the same browser needs no login.
        page.reload()
        page.get_by_text("serving").wait_for()
        page.get_by_role("button", name="Log out cassandra").click()
        page.locator("#login-form").wait_for(state="visible")

        log_in("bob", "bob's")
        page.get_by_text("bob has no SELECT on KEYSPACE system_views").wait_for()
        run("SELECT key FROM system.local")
        page.locator("#query-result td", has_text="local").wait_for()
        run("SELECT * FROM system_auth.roles")
        page.get_by_text("User bob has no SELECT permission").wait_for()
        assert blocked == []
    finally:
        context.close()
        node.kill()
