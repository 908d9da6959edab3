"""The dashboard in a real browser: its views on a node that works."""

import json
import os
import re
import time
import urllib.request

import pytest

from dashboard import ROWS, browser, cells, figure, needs_browser, opened, page, served, session_of, view  # noqa: F401
from node import OwnNode

pytestmark = needs_browser


def test_the_overview_draws_what_goes_on(page, served):
    from playwright.sync_api import expect

    expect(page.locator("#tiles dd")).to_have_count(8)
    expect(page.locator("#chart-requests")).to_have_attribute("aria-label", re.compile(r"now: query \d"))
    # The chart has latencies only for statements that run now, so each look at it must find all of them.
    with session_of(served) as session:
        deadline = time.monotonic() + 30
        while not re.search(r"p50 \d.* p95 \d.* p99 \d", page.locator("#chart-latency").get_attribute("aria-label")):
            assert time.monotonic() < deadline
            session.execute("SELECT v FROM seen.things WHERE k = 1")
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

    def brush():
        box = page.locator("#spectrogram").bounding_box()
        page.mouse.move(box["x"] + 70, box["y"] + 8)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] - 10, box["y"] + box["height"] - 30, steps=4)
        page.mouse.up()

    def only(kind):
        for box in page.locator("#io-kinds input").all():
            box.set_checked(box.get_attribute("data-kind") == kind)

    # The value below the pointer, and what the colours mean.
    page.locator("#spectrogram").hover()
    assert re.fullmatch(r"\d\d:\d\d:\d\d, .+ to .+: \d+ reads, writes and syncs", page.locator("#io-hover").inner_text())
    assert figure(page.locator("#io-most").inner_text()) >= 2
    # What is not read is listed, too.
    only("fsync")
    brush()
    page.locator("#slowest td", has_text=re.compile("^sync$")).first.wait_for()
    only("flush")
    brush()
    page.locator("#slowest td", has_text="write (flush)").first.wait_for()
    only("data")
    brush()
    page.locator("#slowest td", has_text="read (data)").first.wait_for()
    page.locator("#slowest td", has_text="seen.things").first.wait_for()
    assert page.locator("#slowest td", has_text="(flush)").count() == 0
    # A date as everybody reads it.
    when = page.locator("#slowest tbody td").first.inner_text()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", when)
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


def test_statements_are_listed_with_what_they_cost_and_counted_anew(page):
    view(page, "Statements")
    row = page.locator("#statements-table tbody tr", has_text="INSERT INTO seen.things")
    row.wait_for()
    assert cells(page, "#statements-table", row)["calls"] == str(ROWS)
    # What took most time is first; the table says so.
    assert page.locator("#statements-table th[aria-sort=descending]").inner_text() == "time, all"
    page.get_by_label("Filter").locator("visible=true").fill("SEEN.things insert")
    assert page.locator("#statements-table tbody tr").count() == 1
    page.get_by_label("Filter").locator("visible=true").fill("seen.things")
    # Sorted by bytes read per byte of answers, largest first.
    page.get_by_role("button", name="read per byte of answers").click()
    column = page.locator("#statements-table th[aria-sort=descending]")
    assert column.inner_text() == "read per byte of answers"
    at = page.locator("#statements-table th").all_inner_texts().index("read per byte of answers")
    shown = page.locator(f"#statements-table tbody td:nth-child({at + 1})").all_inner_texts()
    found = [figure(text) for text in shown]
    assert found == sorted(found, reverse=True) and found[0] > 0
    page.get_by_role("button", name="Count from now on").click()
    row.wait_for(state="detached")


def test_the_schema_is_browsed(page):
    view(page, "Schema")
    page.get_by_role("button", name="things", exact=True).click()
    page.locator("#schema-text").get_by_text("CREATE TABLE seen.things").wait_for()


def test_tables_are_listed_with_what_they_take(page):
    view(page, "Tables")
    row = page.locator("#tables-table tbody tr", has_text="things")
    row.wait_for()
    shown = cells(page, "#tables-table", row)
    assert (shown["keyspace"], shown["table"]) == ("seen", "things")
    assert re.fullmatch(r"[\d.]+ (B|KiB)", shown["on disk"])
    assert (shown["SSTables"], shown["compactions due"]) == ("1", "0")
    assert int(shown["partitions, about"]) == ROWS
    # The table itself shows the rest.
    row.get_by_role("link", name="things").click()
    facts = page.locator("#tables-chosen .facts")
    facts.wait_for()
    assert re.search(r"partition, median\s+\d+ B", facts.inner_text())
    assert page.evaluate("location.hash") == "#tables/seen.things"
    page.get_by_role("link", name="Its schema").click()
    page.locator("#schema-text").get_by_text("CREATE TABLE seen.things").wait_for()


def samples(node, after):
    url = f"http://127.0.0.1:{node.admin_port}/api/history?after={after}"
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)["samples"]


def test_the_charts_show_what_was_before_the_page_was_opened(browser, served):
    begin = samples(served, 0)[-1]["millis"]
    with session_of(served) as session:
        select = session.prepare("SELECT v FROM seen.things WHERE k = ?")
        for key in range(ROWS):
            session.execute(select, (key,))
    deadline = time.monotonic() + 30
    executed = 2  # the place of EXECUTE among the kinds
    while sum(sample["requests"][executed] for sample in samples(served, begin)) < ROWS:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    with opened(browser, served) as page:
        chart = page.locator("#chart-requests")
        page.wait_for_function("document.querySelector('#chart-requests').ariaLabel.includes('query')")
        # The arrow keys go back from sample to sample; the legend has their time and values.
        chart.focus()
        for _ in range(300):
            page.keyboard.press("ArrowLeft")
            if re.match(r"\d\d:\d\d:\d\d: .*execute [1-9]", chart.get_attribute("aria-label")):
                break
        else:
            pytest.fail(f"no EXECUTE before {chart.get_attribute('aria-label')}")
        values = page.locator("figure", has=chart).locator(".legend")
        assert re.search(r"\d\d:\d\d:\d\d[\s\S]*execute [1-9]", values.inner_text())


def test_an_empty_node_says_how_to_connect(browser, tmp_path):
    node = OwnNode(os.environ["SMOKE_ILION"], str(tmp_path / "data"))
    node.start()
    try:
        with opened(browser, node) as page:
            page.get_by_text(f"cqlsh 127.0.0.1 {node.port}").wait_for()
            page.get_by_text(f"ilion cql 127.0.0.1:{node.port}").wait_for()
            page.get_by_role("link", name="make a keyspace").click()
            page.get_by_role("button", name="Run", exact=True).click()
            page.get_by_text("The statement answers no rows.").wait_for()
            page.get_by_label("CQL statement").fill("CREATE TABLE first.things (k int PRIMARY KEY)")
            page.get_by_role("button", name="Run", exact=True).click()
            page.locator("#query-status").get_by_text("done").wait_for()
            view(page, "Overview")
            page.get_by_text(f"cqlsh 127.0.0.1 {node.port}").wait_for(state="hidden")
            view(page, "Advice")
            page.get_by_text("Nothing to advise").wait_for()
    finally:
        node.kill()


def test_a_statement_that_looks_at_tombstones_is_advised_about(browser, served):
    with session_of(served) as session:
        # Deletions of cells: reads would jump over deletions of whole rows.
        session.execute("CREATE TABLE seen.erased (k int, c int, v int, PRIMARY KEY (k, c))")
        insert = session.prepare("INSERT INTO seen.erased (k, c) VALUES (1, ?)")
        delete = session.prepare("DELETE v FROM seen.erased WHERE k = 1 AND c = ?")
        for number in range(200):
            session.execute(delete, (number,))
        session.execute(insert, (200,))
        for _ in range(25):
            session.execute("SELECT c FROM seen.erased WHERE k = 1")
    with opened(browser, served, "#advice") as page:
        advice = page.locator("article", has_text="seen.erased")
        advice.wait_for()
        assert "looks at 200 tombstones for each row that it answers" in advice.inner_text()
        assert "25 calls, 1 rows each" in advice.inner_text()
        advice.get_by_role("link", name="Show it").click()
        page.locator("#statements-table tbody tr", has_text="seen.erased").wait_for()
        assert page.locator("#statements-table tbody tr").count() == 1


def test_an_address_names_a_view_with_its_choices(page):
    def reloaded():
        address = page.evaluate("location.hash")
        page.reload()
        page.get_by_text("serving").wait_for()
        assert page.evaluate("location.hash") == address
        return address

    view(page, "Statements")
    page.locator("#statements-table").get_by_role("button", name="calls").click()
    page.locator("#statements-filter").fill("things")
    reloaded()
    page.locator("#statements-table th[aria-sort=descending]", has_text="calls").wait_for()
    rows = page.locator("#statements-table tbody tr")
    assert rows.count() == page.locator("#statements-table tbody tr", has_text="things").count() >= 1
    view(page, "I/O")
    page.select_option("#io-window", "3000")
    page.locator("#io-kinds input[data-kind=log]").uncheck()
    reloaded()
    page.locator("#io-kinds input[data-kind=log]").wait_for()
    assert not page.locator("#io-kinds input[data-kind=log]").is_checked()
    assert page.locator("#io-kinds input[data-kind=data]").is_checked()
    assert page.locator("#io-window").input_value() == "3000"
    # A statement of an address is not executed until somebody says so.
    view(page, "Query")
    page.get_by_label("CQL statement").fill("SELECT k FROM seen.things WHERE k = 5")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_text("rows 1 to 1,").wait_for()
    reloaded()
    assert page.get_by_label("CQL statement").input_value() == "SELECT k FROM seen.things WHERE k = 5"
    assert page.locator("#query-result table").count() == 0


def test_numbers_times_and_addresses_are_what_people_read(page):
    def answers(module, expression):
        return page.evaluate(f"import('/assets/{module}').then((of) => {expression})")

    assert answers("format.js", "[0.0372, 621, 6210, 621000, 9e7].map(of.millis)") == [
        "37.2 us", "621 ms", "6.21 s", "10 min", "25 h 0 min",
    ]  # fmt: skip
    assert answers("format.js", "[0, 0.00107, 3.1, 30, 300, 12345, 6.21e9].map(of.digits)") == [
        "0", "0.00107", "3.1", "30", "300", "12.3 k", "6.2 G",
    ]  # fmt: skip
    parsed = answers("route.js", "of.parse('#b/x%20y?filter=a%26b', ['a', 'b'])")
    assert parsed == {"view": "b", "argument": "x y", "values": {"filter": "a&b"}}
    assert answers("route.js", "of.print(of.parse('#b/x%20y?filter=a%26b&old=', ['a', 'b']))") == "#b/x%20y?filter=a%26b"
    assert answers("route.js", "of.parse('#nonsense/x', ['a', 'b'])")["view"] == "a"
    # 9 of 10 took up to 2 us.
    assert answers("history.js", "of.quantile([1000, 2000, 4000], [0, 9, 1], 0.9)") == 1500
    assert answers("history.js", "of.quantile([1000], [0, 0], 0.5)") is None
    assert answers("overview.js", "[of.clientAddress('0.0.0.0:9042', 'db1'), of.clientAddress('[::1]:9', 'db1')]") == [
        {"host": "db1", "port": "9042"},
        {"host": "::1", "port": "9"},
    ]


def test_large_partitions_and_late_compactions_are_advised_about(page):
    """With a made-up report: the real ones take long to make."""
    zero = {"max": 0, "p99": 0}
    table = {
        "keyspace": "shop", "table": "orders", "sstables": 40, "sstable_bytes": 1 << 30, "pending_compactions": 31,
        "droppable_tombstones": 0, "partition_bytes": {"max": 300 << 20, "p99": 9000}, "cells": zero,
    }  # fmt: skip
    advise = "import('/assets/advice.js').then((of) => of.advise(%s).map((one) => `${one.about} ${one.title}: ${one.evidence}`))"
    found = page.evaluate(advise % json.dumps({"tables": [table], "status": {"failure": "no space left", "tables": []}}))
    assert len(found) == 3
    # What stops the node is first.
    assert found[0] == "The node refuses writes: no space left"
    assert "shop.orders has a partition larger than 100 MiB: The largest has about 300.0 MiB" in found[1]
    assert "shop.orders has 31 compactions due" in found[2]
    healthy = {**table, "pending_compactions": 0, "partition_bytes": zero}
    assert page.evaluate(advise % json.dumps({"tables": [healthy], "status": {"tables": []}, "statements": []})) == []


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
