"""The dashboard in a real browser, on made-up answers that never change: how views look, their accessibility, the cluster, latencies."""

import os
import re
from importlib import resources

import pytest

from dashboard import FONTS, VIEWS, browser, cells, needs_browser, opened, view  # noqa: F401
from dashboard_answers import Answers, busy, empty, member
from node import OwnNode
from pictures import Album

pytestmark = needs_browser

SCHEMES = ["light", "dark"]


@pytest.fixture(scope="module")
def served(browser, tmp_path_factory):
    """A node that serves the page only: its other answers are not seen."""
    node = OwnNode(os.environ["SMOKE_ILION"], str(tmp_path_factory.mktemp("dashboard") / "data"))
    node.start()
    yield node
    node.kill()


def show(page, name):
    """Shows a view, and waits until all of it is drawn."""
    view(page, name)
    there = {
        "Overview": "#caches td",
        "Cluster": "#cluster-others td, #cluster-single dd",
        "Advice": "#advice-list > *",
        "I/O": "#io-kinds input",
        "Statements": "#statements-table td",
        "Tables": "#tables-table td",
        "Schema": "#schema-tree button",
        "Query": "#query-run",
    }
    page.locator(there[name]).first.wait_for()


def explain(page):
    view(page, "Query")
    page.get_by_label("CQL statement").fill("SELECT * FROM shop.orders WHERE customer = 2 LIMIT 5")
    page.get_by_role("button", name="Explain and run").click()
    page.locator("#query-steps td").first.wait_for()
    page.evaluate("document.activeElement.blur()")


def with_markers(page):
    """A statement of the statements view in the editor, with a box for its value."""
    view(page, "Statements")
    page.locator("#statements-table").get_by_role("link").first.click()
    page.get_by_label("customer", exact=True).wait_for()


def use_scheme(page, scheme):
    """Sets the page to light or dark: by the system's setting, or in Firefox, where Playwright cannot change that, by the page's own button."""
    if page.context.browser.browser_type.name == "chromium":
        page.emulate_media(color_scheme=scheme)
        return
    button = page.locator("#theme")
    while button.inner_text() != f"Theme: {scheme}":
        button.click()
    page.evaluate("document.activeElement.blur()")
    page.mouse.move(0, 0)


@pytest.mark.skipif(not os.path.isdir(FONTS), reason=f"the pictures are drawn with the fonts of {FONTS}")
def test_views_look_as_their_pictures(browser, served):
    album = Album(browser)

    def compare(page, name):
        for width in [1200, 400]:
            page.set_viewport_size({"width": width, "height": 900})
            for scheme in SCHEMES:
                use_scheme(page, scheme)
                album.compare(page, f"{name}-{width}-{scheme}")

    with opened(browser, served, answers=empty, timezone_id="UTC") as page:
        show(page, "Overview")
        page.locator("#connect-ways dd").first.wait_for()
        compare(page, "empty")
    with opened(browser, served, answers=member, timezone_id="UTC") as page:
        show(page, "Overview")
        page.locator("#heat-summary", has_text="statements").wait_for()
        compare(page, "overview")
        show(page, "Cluster")
        compare(page, "cluster")
        explain(page)
        compare(page, "query")
    album.check()


class Inspector:
    """Notes where a page breaks the rules of WCAG 2.2, levels A and AA, as far as axe-core can tell: in light all rules, in dark those of colours."""

    RULES = {"light": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], "dark": {"type": "rule", "values": ["color-contrast"]}}

    def __init__(self, page):
        self.page = page
        self.found = []
        page.evaluate((resources.files("axe_playwright_python") / "axe.min.js").read_text())

    def inspect(self, name):
        for scheme in SCHEMES:
            self.page.evaluate("(scheme) => { document.documentElement.dataset.theme = scheme; }", scheme)
            options = {"runOnly": self.RULES[scheme], "resultTypes": ["violations"]}
            for broken in self.page.evaluate("(options) => axe.run(options)", options)["violations"]:
                places = [node["target"] for node in broken["nodes"]]
                self.found.append(f"{name}, {scheme}: {broken['id']}: {broken['help']}: {places[:5]}")


def test_views_follow_the_rules_of_wcag_aa(browser, served):
    with opened(browser, served, answers=member) as page:
        inspector = Inspector(page)
        for name in VIEWS:
            show(page, name)
            page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
            inspector.inspect(name)
        # What is only there at times: values of markers, the plan and the steps, the list of completions, an error.
        with_markers(page)
        inspector.inspect("values of markers")
        explain(page)
        page.locator("#cql").press_sequentially(" an")
        page.get_by_role("listbox").wait_for()
        inspector.inspect("completions")
        page.locator("#cql").press("Escape")
        page.get_by_label("CQL statement").fill("nonsense")
        page.get_by_role("button", name="Run", exact=True).click()
        page.locator("#query-error").wait_for()
        inspector.inspect("error")
        assert inspector.found == []
    with opened(browser, served, answers=empty) as page:
        inspector = Inspector(page)
        for name in ["Overview", "Cluster"]:
            show(page, name)
            inspector.inspect(f"{name} of an empty node")
        assert inspector.found == []


def test_400_pixels_are_enough(browser, served):
    with opened(browser, served, answers=member, width=400) as page:
        for name in VIEWS:
            show(page, name)
            # A view begins at its top, with its heading in sight.
            assert page.evaluate("window.scrollY") == 0, name
            if name == "Tables":
                page.get_by_role("link", name="orders").click()
                page.locator("#tables-chosen .facts").wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= 400, name


def test_a_member_of_a_cluster_shows_nodes_tablets_waits_and_brokers(browser, served):
    from playwright.sync_api import expect

    with opened(browser, served, answers=member) as page:
        # At a glance, on the first view.
        glance = page.locator("#glance")
        expect(glance).to_have_text("A node of a cluster of 3: 1 is down; this one has 12 records left to apply.")
        glance.get_by_role("link").click()
        table = page.locator("#cluster-nodes tbody tr")
        expect(table).to_have_count(3)
        first, second, third = (cells(page, "#cluster-nodes", table.nth(place)) for place in range(3))
        assert (first["node"], first["state"], first["load"], first["owns"]) == ("127.0.0.1 (this one)", "up", "812.0 MiB", "75 %")
        assert (first["records behind"], first["tokens"]) == ("12", "2")
        assert (second["state"], second["silent, of the limit"]) == ("up, leaving", "13.7 %")
        # What a node that is down does not say is not invented.
        assert (third["state"], third["load"], third["records behind"]) == ("down", "?", "?")
        told = page.locator("#cluster-findings").inner_text()
        assert "127.0.0.3 (rack3) is down." in told
        assert "This node applies the records of 1 tablet no more: its log has the reason." in told
        assert "The data of replicas differs, and none of them has a majority: the log of this node says where." in told
        assert "Under way: 127.0.0.2 leaves, 1 slice; data goes to 127.0.0.1 (has all)." in told
        # Slices of the ring, with their replicas.
        page.get_by_text("Slices of the ring").first.click()
        slices = page.locator("#cluster-slices tbody tr")
        expect(slices).to_have_count(4)
        assert [text.split("\t") for text in slices.all_inner_texts()][0] == ["-4611686018427387905", "25 %", "127.0.0.1, 127.0.0.2"]
        # Tablets, the furthest behind first.
        lags = page.locator("#cluster-tablets tbody tr")
        assert [text.split()[:2] for text in lags.all_inner_texts()] == [["1", "9"], ["2", "3"], ["0", "0"], ["5", "0"]]
        expect(page.locator("#cluster-tablets-facts")).to_contain_text("halted\n1", use_inner_text=True)
        # 1000 waits took 10 s in all, 900 of them up to 8.2 ms.
        waits = page.locator("#cluster-barriers tbody tr").first
        assert cells(page, "#cluster-barriers", waits) == {
            "wait": "until the log has the no-ops of the read", "how often": "1000", "mean": "10 ms", "p50": "4.61 ms", "p99": "8.19 ms",
        }  # fmt: skip
        expect(page.locator("#cluster-brokers-facts")).to_contain_text("b1:9092, b2:9092")
        produced = page.locator("#cluster-brokers tbody tr", has_text="requests with records")
        assert cells(page, "#cluster-brokers", produced)["failed"] == "4"
        other = page.locator("#cluster-others tbody tr", has_text="127.0.0.3")
        assert (cells(page, "#cluster-others", other)["asked"], cells(page, "#cluster-others", other)["too late"]) == ("11", "3")
        # Another keyspace; it is part of the address.
        page.get_by_label("Shares of keyspace").select_option("system_auth")
        expect(page.locator("#cluster-slices caption")).to_contain_text("system_auth")
        assert page.evaluate("location.hash") == "#cluster?keyspace=system_auth"


def test_a_single_node_says_that_it_is_one(browser, served):
    from playwright.sync_api import expect

    with opened(browser, served, "#cluster", answers=busy) as page:
        said = page.locator("#cluster-single")
        expect(said).to_contain_text("This node is a single one: it holds all data and needs no other service.")
        expect(said.get_by_role("link")).to_have_attribute("href", re.compile("/docs/cluster.md$"))
        expect(page.locator("#cluster-nodes")).to_be_hidden()
        view(page, "Overview")
        expect(page.locator("#caches td").first).to_be_visible()
        expect(page.locator("#glance")).to_be_hidden()


def quiet(*latencies):
    """Samples of a node whose requests took these counts by latency; nothing happened in the other seconds."""
    samples = []
    for second in range(1, 301):
        counts = latencies[second] if second < len(latencies) else []
        samples.append({**busy.by_path["api/history"]["samples"][0], "millis": 1000 * second, "latencies": list(counts)})
    return Answers({**busy.by_path, "api/history": {**busy.by_path["api/history"], "samples": samples}}, busy.by_words)


def test_latencies_are_a_picture_whose_values_are_read_by_pointer_keys_and_as_a_table(browser, served):
    from playwright.sync_api import expect

    # In the second 2, 70 requests took up to 16 us, and one took up to 8.2 ms.
    some = [0] * 14
    some[4], some[13] = 70, 1
    with opened(browser, served, answers=quiet([], [], some), timezone_id="UTC") as page:
        expect(page.locator("#heat-summary")).to_contain_text("71 statements and batches in 5 minutes.")
        expect(page.locator("#heat-most")).to_have_text("70")
        heat = page.locator("#heat")
        box = heat.bounding_box()
        # Columns are 2 s, rows are the 12 latencies around those that occur.
        column = (box["width"] - 72) / 150
        heat.hover(position={"x": 64 + 0.5 * column, "y": 6 + (box["height"] - 26) * (1 - 1.5 / 12)})
        expect(page.locator("#heat-hover")).to_have_text("10:00:02, 8 us to 16 us: 70 requests in 2 s")
        heat.hover(position={"x": 64 + 1.5 * column, "y": 6 + (box["height"] - 26) * (1 - 1.5 / 12)})
        expect(page.locator("#heat-hover")).to_have_text("10:00:04, 8 us to 16 us: 0 requests in 2 s")
        page.mouse.move(0, 0)
        # By the keys: from the newest column to the left.
        heat.focus()
        for _ in range(16):
            page.keyboard.press("Control+ArrowLeft")
        for _ in range(12):
            page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowDown")
        expect(heat).to_have_attribute("aria-label", "Latency heat map. 10:00:02, 4.1 ms to 8.19 ms: 1 request in 2 s")
        # What is drawn is where the pointer says: one column has colours.
        coloured = heat.evaluate(
            """(canvas) => {
                const ratio = canvas.width / canvas.clientWidth;
                const pen = canvas.getContext("2d");
                const bright = (x, y) => Math.max(...pen.getImageData(x * ratio, y * ratio, 1, 1).data.slice(0, 3)) > 100;
                const column = (canvas.clientWidth - 72) / 150;
                const y = 6 + (canvas.clientHeight - 26) * (1 - 1.5 / 12);
                return [0.5, 1.5, 80.5].map((place) => bright(64 + place * column, y));
            }"""
        )
        assert coloured == [True, False, False]
        page.get_by_text("The same as a table").click()
        rows = page.locator("#heat-table tbody tr")
        expect(rows).to_have_count(6)
        assert cells(page, "#heat-table", rows.last) == {
            "minute": "10:00", "requests": "71", "p50": "12 us", "p95": "12 us", "p99": "6.14 ms", "slowest, at least": "4.1 ms",
        }  # fmt: skip
