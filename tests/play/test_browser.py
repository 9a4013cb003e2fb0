"""Tests of the live page in Chromium: walkthroughs, sliders, recordings, closing the tab."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = (
    os.environ.get("UNLAZY_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed; set $UNLAZY_CHROMIUM"
)

#: Sizes at which a walkthrough takes seconds, including compilation.
SMOKE_SIZES = {
    "shi2022": {"d": 12, "D": 6, "m": 4, "T": 60, "n": 200},
    "glasgow2023": {"d": 8, "width": 8, "steps": 60},
    "daniely2020": {"d": 8, "k": 3, "n": 200, "m": 16, "steps": 50},
    "malach2019": {"inputs": "4", "n": 200, "k": 8, "steps": 50},
    "allenzhu2019": {"d": 4, "order": 2, "n": 100, "m": 20, "epochs": 20},
}
VIEW = {
    "shi2022": "Neurons",
    "glasgow2023": "Neurons",
    "daniely2020": "Weights",
    "malach2019": "Gates",
    "allenzhu2019": "Signals",
}


@pytest.fixture(scope="module")
def address():
    command = [sys.executable, "-m", "unlazy", "play", "shi2022", "--no-browser"]
    command += [
        word
        for name, value in {**SMOKE_SIZES["shi2022"], "seeds": 1}.items()
        for word in ("--set", f"{name}={value}")
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        yield re.search(r"http://\S+", server.stdout.readline())[0]
        server.terminate()


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def page(browser, address):
    found = browser.new_page(viewport={"width": 1300, "height": 900})
    wrong = []
    found.on("pageerror", lambda error: wrong.append(str(error)))
    found.goto(address)
    yield found
    if not found.is_closed():
        found.close()
    assert not wrong


def until(page, expression, seconds=90):
    """Wait until an expression is true in the page.

    Playwright's own waiting evaluates strings, which the page's content policy forbids.
    """
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"{expression}: {page.inner_text('#status')}"
        page.wait_for_timeout(30)


def slider(page, name):
    return page.locator(f"#slider-{name}")


def painted(page, canvas):
    """Return the number of non-transparent pixels of a canvas."""
    return page.evaluate(
        f"""() => {{ const c = document.getElementById("{canvas}");
        const data = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        let n = 0; for (let i = 3; i < data.length; i += 4) n += data[i] > 0; return n; }}"""
    )


def status(address):
    host, token = re.match(r"(http://[^/]+)/\?token=(.*)", address).groups()
    with urllib.request.urlopen(f"{host}/status?token={token}") as answer:
        return json.load(answer)


@pytest.mark.slow
@pytest.mark.parametrize("walkthrough", SMOKE_SIZES)
def test_each_walkthrough_runs_to_its_end(page, walkthrough, tmp_path):
    if walkthrough != "shi2022":  # the initial preset
        settings = json.dumps({**SMOKE_SIZES[walkthrough], "seeds": 1})
        page.evaluate(f"choose({json.dumps(walkthrough)}, {settings}); start()")
    page.select_option("#speed", "60")
    until(page, "state.run && state.frames.length > 3")
    if walkthrough == "shi2022":  # a value that applies immediately, and an invalid one
        until(page, "state.cursor > 4")
        slider(page, "pace").fill("2")
        until(page, "document.getElementById('status').textContent.startsWith('Resumed from step')")
        run = page.evaluate("state.number")
        slider(page, "k").fill("4")
        until(page, "document.getElementById('slider-k-error').textContent.includes('odd')")
        assert slider(page, "k").get_attribute("aria-invalid") == "true"
        slider(page, "k").fill("3")
        until(page, "document.getElementById('slider-k-error').textContent === ''")
        assert page.evaluate("state.number") == run, "a live or an invalid value restarted training"
    until(page, "state.finished && !state.playing")
    if walkthrough == "shi2022":  # the cheapest baseline
        until(page, "Object.values(state.run.baselines).every(errors => errors)")
        assert not page.locator("#legend td", has_text="…").count()
    page.wait_for_timeout(150)  # the last frame
    assert page.locator("#tabs button[aria-pressed=true]").inner_text() == VIEW[walkthrough]
    assert painted(page, "view") > 500 and painted(page, "curves") > 500
    assert page.evaluate(
        "state.frames.at(-1).step === state.run.last && state.frames.every((frame, i) => "
        "frame.index === i)"
    )
    assert page.locator("#legend tr:not(.group)").count() == page.evaluate(
        "state.run.learners.length + Object.keys(state.run.baselines).length"
    )
    assert page.inner_text("#summary").startswith(
        f"Step {page.evaluate('state.run.last')}: test error "
    )
    assert page.locator("#legend tr.group").all_inner_texts() == [
        "Learned features",
        "Fixed features",
    ]
    assert page.evaluate("state.fps") > 0
    if walkthrough == "glasgow2023":
        check_sharing(page, tmp_path)


def check_sharing(page, folder):
    """A shared recording plays from a file, without requests, and shows the same values."""
    with page.expect_download() as waiting:
        page.click("#share")
    path = folder / "shared.html"
    waiting.value.save_as(path)
    summary, shared = page.inner_text("#summary"), page.context.browser.new_page()
    requests = []
    shared.on("request", lambda request: requests.append(request.url))
    shared.goto(path.as_uri())
    until(shared, "state.cursor > 2")
    shared.keyboard.press("End")
    until(shared, "document.getElementById('summary').textContent.startsWith('Step 60')")
    assert shared.inner_text("#summary") == summary and painted(shared, "view") > 500
    assert shared.locator("#sliders input:not([disabled])").count() == 0 and not shared.is_visible(
        "#share"
    )
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    shared.close()


def test_keys_move_between_frames_and_the_page_fits_a_phone(page):
    until(page, "state.frames.length > 8")
    page.locator("#stage").focus()
    page.keyboard.press("Home")
    until(page, "!state.playing && state.cursor === 0")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    until(page, "state.cursor === 2")
    page.keyboard.press("Space")
    until(page, "state.playing && state.cursor > 3")
    page.keyboard.press("Space")
    until(page, "!state.playing")
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(150)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
        "the page is wider than a phone"
    )
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
    unnamed = page.evaluate(
        """[...document.querySelectorAll("input, select, button, canvas")].filter(
        e => !e.closest("[hidden]") &&
        !(e.getAttribute("aria-label") || e.getAttribute("aria-describedby") ||
        e.labels?.length || e.textContent.trim())).length"""
    )
    assert unnamed == 0, "a control has no accessible name"


@pytest.mark.slow
def test_closing_the_tab_stops_training(page, address):
    until(page, "state.frames.length > 2")
    page.evaluate(
        "choose('shi2022', {T: 600, n: 10000, m: 200, d: 200, D: 100, seeds: 6}); start()"
    )
    until(page, "state.socket.readyState === 1")
    assert status(address)["sessions"] >= 1
    page.close()
    end = time.monotonic() + 90
    while status(address) != {"sessions": 0, "busy": False}:
        assert time.monotonic() < end, status(address)
