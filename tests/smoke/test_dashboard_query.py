"""The query view of the dashboard in a real browser: statements, their plans and steps, completion."""

import re

from dashboard import ROWS, browser, cells, needs_browser, page, served, view  # noqa: F401

pytestmark = needs_browser


def test_a_query_is_typed_run_and_paged(page):
    view(page, "Query")
    page.get_by_label("CQL statement").fill("SELECT k, v FROM things")
    page.get_by_label("Keyspace", exact=True).fill("seen")
    # By keys: what Playwright fills into a box for numbers, Firefox adds to what is there.
    page.get_by_label("Rows a page").press("Control+a")
    page.keyboard.type("50")
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
    # What was measured is drawn, too.
    page.locator("#query-plan .measure", has_text="rows scanned").wait_for()


def test_an_error_replaces_the_answer_before_it(page):
    view(page, "Query")
    page.get_by_label("CQL statement").fill("SELECT k FROM seen.things")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_text("rows 1 to 100").wait_for()
    page.get_by_label("CQL statement").fill("SELEC nothing")
    page.get_by_role("button", name="Run", exact=True).click()
    page.locator("#query-error").get_by_text("SELEC").wait_for()
    assert page.locator("#query-result table").count() == 0
    assert page.get_by_text("rows 1 to 100").count() == 0
    assert page.get_by_role("button", name="Next page").is_disabled()
    # A good statement replaces the error.
    page.get_by_label("CQL statement").fill("SELECT k FROM seen.things WHERE k = 1")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_text("rows 1 to 1,").wait_for()
    assert not page.locator("#query-error").is_visible()


def test_statements_of_the_query_box_are_counted(page):
    view(page, "Query")
    page.get_by_label("CQL statement").fill("SELECT v FROM seen.things WHERE k = 3 AND v = 'boxed' ALLOW FILTERING")
    page.get_by_role("button", name="Run", exact=True).click()
    page.locator("#query-status").get_by_text("rows").wait_for()
    view(page, "Statements")
    shape = "SELECT v FROM seen.things WHERE k = ? AND v = ? ALLOW FILTERING"
    row = page.locator("#statements-table tbody tr", has_text=shape)
    row.wait_for()
    assert cells(page, "#statements-table", row)["calls"] == "1"


def options(page):
    return [text.replace("\n", " ") for text in page.locator("#completions [role=option]").all_inner_texts()]


def test_names_of_the_schema_and_keywords_are_completed_by_keys(page):
    from playwright.sync_api import expect

    view(page, "Query")
    editor = page.locator("#cql")
    listed = page.get_by_role("listbox", name="Completions")
    editor.fill("")
    # The names of the schema come after the view is shown.
    editor.press_sequentially("SELECT * FROM se")
    page.wait_for_function(
        """() => {
            document.querySelector("#cql").dispatchEvent(new InputEvent("input"));
            return document.querySelector("#completions").textContent.includes("seen.");
        }"""
    )
    # The editor says that it has a list, and which of its options is chosen.
    expect(editor).to_have_role("combobox")
    expect(editor).to_have_attribute("aria-expanded", "true")
    chosen = page.locator(f"#{editor.get_attribute('aria-activedescendant')}")
    expect(chosen).to_have_attribute("aria-selected", "true")
    expect(chosen).to_contain_text("seen.")
    # Tab takes it; then the tables of the keyspace are offered, and Enter takes one.
    editor.press("Tab")
    expect(editor).to_have_value("SELECT * FROM seen.")
    expect(listed).to_contain_text("things")
    editor.press("Enter")
    expect(editor).to_have_value("SELECT * FROM seen.things")
    expect(listed).to_be_hidden()
    assert editor.get_attribute("role") is None
    # Columns of the table, and keywords; the arrow keys go around.
    editor.press_sequentially(" wh")
    editor.press("Enter")
    expect(editor).to_have_value("SELECT * FROM seen.things where")
    editor.press_sequentially(" ")
    expect(listed).to_be_hidden()
    editor.press("Control+Space")
    assert options(page)[:2] == ["k column", "v column"]
    editor.press("ArrowDown")
    expect(page.locator("#completions [aria-selected=true]")).to_contain_text("v")
    editor.press("ArrowUp")
    editor.press("ArrowUp")
    expect(page.locator("#completions [role=option]").last).to_have_attribute("aria-selected", "true")
    # Escape closes the list and changes nothing; Enter is a new line again.
    editor.press("Escape")
    expect(listed).to_be_hidden()
    editor.press("Enter")
    expect(editor).to_have_value("SELECT * FROM seen.things where \n")
    # Without a list, Tab leaves the editor.
    editor.press("Tab")
    assert page.evaluate("document.activeElement.id") == "query-keyspace"


def test_a_completion_is_taken_by_the_pointer_and_undone(page):
    from playwright.sync_api import expect

    view(page, "Query")
    editor = page.locator("#cql")
    editor.fill("")
    editor.press_sequentially("upd")
    page.get_by_role("option", name="update keyword").click()
    expect(editor).to_have_value("update")
    assert page.evaluate("document.activeElement.id") == "cql"
    editor.press("Control+z")
    expect(editor).to_have_value("upd")


SCHEMA = """
    const columns = ["customer", "id", "Item"].map((column_name, position) => ({
        keyspace_name: "shop", table_name: "orders", column_name, kind: position ? "clustering" : "partition_key", position }));
    const schema = of.catalog([...columns, { ...columns[0], keyspace_name: "select", table_name: "Odd \\"one" }], [],
        [{ keyspace_name: "shop", function_name: "maxim" }, { keyspace_name: "shop", aggregate_name: "Median" }]);
"""


def test_what_may_stand_at_a_place_is_known_without_a_page(page):
    def words(text, keyspace="shop"):
        place = text.index("|")
        call = f"of.complete({text.replace('|', '')!r}, {place}, schema, {keyspace!r})"
        found = page.evaluate(f"import('/assets/complete.js').then((of) => {{ {SCHEMA} return {call}; }})")
        # A word is replaced as a whole, also if the cursor is inside of it.
        rest = re.match(r"\w*", text[place + 1 :]).group()
        assert not found["options"] or found["to"] == place + len(rest)
        return [option["text"] for option in found["options"]]

    assert words("SEL|") == ["SELECT"]
    assert words("select * from o|") == ["orders"]
    assert words("SELECT * FROM sh|", "") == ["shop."]
    assert words("SELECT * FROM sel|") == ['"select".']
    assert words('SELECT * FROM "select".|') == ['"Odd ""one"']
    assert words("SELECT cust| FROM shop.orders", "") == ["customer"]
    assert words("SELECT cust|o FROM shop.orders", "") == ["customer"]
    # Quotes where they are needed, and where they were begun.
    assert words("SELECT it| FROM orders") == ['"Item"']
    assert words('SELECT "It| FROM orders')[:1] == []
    assert words('SELECT * FROM orders WHERE "It|') == ['"Item"']
    # Functions of the keyspace, and native ones in the case of what was typed.
    assert words("SELECT maxi| FROM orders") == ["maxim("]
    assert words("SELECT me| FROM shop.orders", "") == ['"Median"(']
    assert words("SELECT shop.ma|", "") == ["maxim("]
    assert words("SELECT MAX_|") == ["MAX_TIMEUUID("]
    assert "abs(" not in words("SELECT | FROM orders")
    # Only the statement of the cursor counts, and neither texts nor comments are completed.
    assert words("SELECT * FROM orders; SELECT cust|") == []
    assert words("SELECT * FROM orders WHERE customer = 'cu|'") == []
    assert words("-- cu|\nSELECT * FROM orders") == []
    assert words("SELECT /* ; */ cust| FROM orders") == ["customer"]
    assert words("-- orders\nSELECT * FROM /* all */ o|") == ["orders"]
    assert words("SELECT * FROM orders WHERE customer = $$ 'cu|$$") == []
    assert words("USE sh|") == ["shop"]
    assert "KEYSPACE" in words("CREATE |")
    # A word that is whole is not offered again.
    assert words("SELECT * FROM orders|") == []


def test_the_steps_of_a_statement_are_drawn_by_time_and_bytes(page):
    trace = [
        {"elapsed_micros": 10, "activity": "Preparing statement"},
        {"elapsed_micros": 100, "activity": "Read 569 bytes of nb-2-big-Data.db at 0 in 30 us"},
        {"elapsed_micros": 150, "activity": "Read 5 live rows and 0 tombstone cells"},
    ]
    steps = page.evaluate("(trace) => import('/assets/steps.js').then((of) => of.timeline(trace, 200))", trace)
    assert [(step["from"], step["took"], step["bytes"]) for step in steps] == [(10, 90, None), (70, 30, 569), (150, 50, None)]
    # On the page: one bar of time for each step, and one of bytes for each read.
    view(page, "Query")
    page.get_by_label("CQL statement").fill("SELECT v FROM seen.things WHERE k = 9")
    page.get_by_role("button", name="Explain and run").click()
    drawn = page.locator("#query-steps tbody tr")
    drawn.filter(has_text="Executing").wait_for()
    assert page.locator("#query-steps td.picture .track").count() >= drawn.count() > 3
    lefts = page.locator("#query-steps td.picture:nth-child(3) i").evaluate_all("(bars) => bars.map((bar) => bar.getBoundingClientRect().left)")
    assert lefts == sorted(lefts) and lefts[0] < lefts[-1]


def test_a_listed_statement_is_explained_with_the_values_of_a_row(page):
    from playwright.sync_api import expect

    view(page, "Statements")
    page.locator("#statements-table").get_by_role("link", name="SELECT v FROM seen.things WHERE k = ?").first.click()
    box = page.get_by_label("k", exact=True)
    page.get_by_role("button", name="Explain and run").click()
    expect(page.locator("#query-error")).to_contain_text("A value is missing: k.")
    assert page.evaluate("document.activeElement.dataset.name") == "k"
    page.get_by_role("button", name="Values of a row").click()
    expect(box).to_have_value(re.compile(r"^\d+$"))
    page.get_by_role("button", name="Explain and run").click()
    page.locator("#query-plan .measure", has_text="rows scanned").wait_for()
    expect(page.locator("#query-result")).to_contain_text(re.compile(r"k = \d+ \(token"))
    # Without markers there are no boxes.
    page.get_by_label("CQL statement").fill("SELECT v FROM seen.things")
    expect(page.locator("#query-values")).to_be_hidden()


def test_markers_stand_for_what_they_are_compared_with(page):
    def of(call, *texts):
        return page.evaluate(f"(texts) => import('/assets/markers.js').then((of) => {call})", texts)

    def names(text):
        return of("of.markers(texts[0]).map((marker) => marker.name)", text)

    assert names("SELECT * FROM t WHERE k = ? AND c >= ? AND \"It\" IN ? LIMIT ?") == ["k", "c", "It", "LIMIT"]
    assert names("INSERT INTO ks.t (k, v) VALUES (?, ?) USING TTL ?") == ["k", "v", "TTL"]
    assert names("UPDATE t SET v = ? WHERE k = ?") == ["v", "k"]
    # Neither texts nor comments have markers.
    assert names("SELECT '?', v FROM t -- ?\nWHERE k CONTAINS KEY ?") == ["k"]
    assert of("of.withValues(texts[0], ['5', \"'it''s ?'\"])", "SELECT '?' FROM t WHERE k = ? AND v = ?") == (
        "SELECT '?' FROM t WHERE k = 5 AND v = 'it''s ?'"
    )
    assert of("[of.literal(\"it's\", 'text'), of.literal('5', 'int'), of.literal(null, 'int')]") == ["'it''s'", "5", "null"]
