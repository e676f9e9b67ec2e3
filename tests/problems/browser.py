"""Pages in a real browser."""

import re
import shutil
import subprocess

import matplotlib.image
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
OVERFLOW = """<script>
document.documentElement.dataset.overflow = document.documentElement.scrollWidth - innerWidth;
</script></body>"""


def browser():
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no browser is installed")
    return found


def _run(folder, page, width, *flags):
    return subprocess.run(
        [
            browser(),
            *FLAGS,
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={width},2400",
            *flags,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout


def screenshot(folder, page, width, *, is_dark=False):
    """Take a picture of a page, and return its pixels."""
    picture = folder / f"{page.stem}-{width}-{'dark' if is_dark else 'light'}.png"
    scheme = ["--blink-settings=preferredColorScheme=0"] if is_dark else []
    _run(folder, page, width, *scheme, f"--screenshot={picture}")
    pixels = matplotlib.image.imread(picture)
    return pixels[..., :3]


def overflow(folder, page, width):
    """By how many pixels a page is wider than its window."""
    measured = folder / f"{page.stem}-measured.html"
    text = page.read_text(encoding="utf-8")
    measured.write_text(text.replace("</body>", OVERFLOW), encoding="utf-8")
    dom = _run(folder, measured, width, "--dump-dom")
    return int(re.search(r'data-overflow="(-?\d+)"', dom)[1])
