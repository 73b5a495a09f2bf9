"""Takes the pictures of docs/tensorboard.md from a real TensorBoard, in a real browser.

    python docs/screenshots.py LOGDIR

LOGDIR is a log folder of `python -m experiments.mnist`, or a folder of several. Pillow shrinks what
Chromium took, and nothing is written before all of it is there.
"""

from __future__ import annotations

import argparse
import contextlib
import html
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Iterator

from compat.errors import Stopped, UserError
from experiments.launching import command_line, signals

FOLDER = Path(__file__).resolve().parent / "tensorboard"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Each tab's plugin, without underscores, and the address below TensorBoard's own that shows what
# the text is about.
TABS = {
    "timeseries": "?tagFilter=(accuracy|cost)/validation&smoothing=0#timeseries",
    "scalars": "#scalars&tagFilter=cost/(train|validation)|staleness|steps_per_sec",
    "customscalars": "#custom_scalars",
    "images": "#images&tagFilter=first_layer",
    "graphs": "#graphs",
    "distributions": "#distributions&tagFilter=hidden",
    "histograms": "#histograms&tagFilter=hidden",
    "text": "#text",
    "prcurves": "#pr_curves&tagFilter=validation",
    "hparams": "#hparams",
    "projector": "#projector",
}
# Further pictures of the same tabs.
MORE = {"confusion": "#images&tagFilter=validation/(confusion|misclassified)$"}
SIZE = (1280, 760)
COLOURS = 128
START_SECS = 60.0
SETTLE_SECS = 10.0
SLOW = {"projector": 3}  # Times as long: it draws last of all.
BROWSER_SECS = 80.0  # To start, and to write the picture.
FLAGS = (
    "--headless",
    "--no-sandbox",  # Or it refuses to run as root.
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-proxy-server",
    "--hide-scrollbars",
    f"--window-size={SIZE[0]},{SIZE[1]}",
)
# Without a GPU, curves on WebGL stay empty; as SVG they do not. The projector has WebGL alone.
NO_WEBGL = ("--disable-gpu", "--disable-3d-apis")
WEBGL = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")


class Frame(http.server.BaseHTTPRequestHandler):
    """Answers with a page that shows the address in its query, and counts as loaded after a time.

    `/30?http://...` does so after 30 seconds.

    The browser takes its picture when a page is loaded, and TensorBoard begins to draw only then.
    """

    def do_GET(self) -> None:  # noqa: N802 (the name that http.server calls)
        """Answers; the picture that nobody sees, late."""
        path, _, address = self.path.partition("?")
        if path.startswith("/late/"):
            time.sleep(float(path.rpartition("/")[2]))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        source = html.escape(urllib.parse.unquote(address))
        page = (
            f'<body style="margin:0"><img src="/late{path}" style="display:none">'
            f'<iframe src="{source}" style="border:0;width:100vw;height:100vh"></iframe>'
        )
        self.wfile.write(page.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextlib.contextmanager
def frames() -> Iterator[str]:
    """Serves `Frame` on a free loopback port while inside; yields the address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Frame) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def find_browser() -> str:
    """Returns the path of a browser.

    Raises:
      UserError: there is none.
    """
    for name in BROWSERS:
        path = shutil.which(name)
        if path:
            return path
    raise UserError(
        f"no browser on PATH; expected one of {', '.join(BROWSERS)}; "
        "install it (on Debian: apt install chromium)"
    )


def start_tensorboard(logdir: Path) -> str:
    """Starts a TensorBoard in this process, with which it ends; returns its address.

    Raises:
      UserError: the folder does not fill all `TABS`.
    """
    # The pages show the folder as it is given: its name says enough.
    os.chdir(str(logdir.parent))
    command_line.quiet_tensorflow()
    from tensorboard import program

    board = program.TensorBoard()
    board.configure(["", f"--logdir={logdir.name}", "--host=127.0.0.1", "--port=0"])
    address = str(board.launch())
    missing = list(TABS)
    deadline = time.monotonic() + START_SECS
    while missing and time.monotonic() < deadline:
        time.sleep(0.5)
        listed = address + "data/plugins_listing"  # Of our own server, on loopback.
        with urllib.request.urlopen(listed, timeout=20) as answer:  # noqa: S310
            listing = {name.replace("_", ""): tab for name, tab in json.load(answer).items()}
        missing = [tab for tab in TABS if not listing.get(tab, {}).get("enabled")]
    if missing:
        raise UserError(
            f"TensorBoard shows nothing of {str(logdir)!r} in its tabs {', '.join(missing)}; "
            "expected a log folder of experiments.mnist that has been trained to its end"
        )
    return address


def photograph(browser: str, address: str, picture: Path, secs: float) -> None:
    """Has `browser` write a picture of the page at `address`, which is drawn within `secs`.

    Raises:
      UserError: it did not.
    """
    process = subprocess.Popen(
        [
            browser,
            *FLAGS,
            *(WEBGL if picture.stem == "projector" else NO_WEBGL),
            f"--user-data-dir={picture.with_suffix('')}",
            f"--screenshot={picture}",
            address,
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ, TMPDIR=str(picture.parent)),  # For what it does not remove itself.
        start_new_session=True,
    )
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):  # There is no picture then.
            process.wait(secs + BROWSER_SECS)
    finally:
        # The processes that it started as well: they would go on writing into its folder.
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if not picture.exists():
        raise UserError(
            f"{browser!r} took no picture of {address} within {secs + BROWSER_SECS:g} s; "
            "expected Chromium or Chrome; try another one"
        )


def main() -> int:
    """Takes all pictures; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logdir", type=Path, help="log folder of a training, or of several")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the pictures")
    words = "seconds in which a page is drawn; more on a busy machine"
    parser.add_argument("--settle", type=float, default=SETTLE_SECS, help=words)
    options = parser.parse_args()
    try:
        with signals.signals():
            take(options.logdir.resolve(), options.out.resolve(), options.settle)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except Stopped as stopped:
        return stopped.exit_code
    return 0


def take(logdir: Path, out: Path, settle: float) -> None:
    """Writes a PNG of each tab into `out`.

    Raises:
      UserError: something that it takes is not there.
    """
    from PIL import Image

    browser = find_browser()
    if not any(logdir.rglob("*tfevents*")):
        raise UserError(
            f"log folder {str(logdir)!r} holds no event files; give the one of a training"
        )
    print(f"TensorBoard reads {logdir} ...", flush=True)
    board = start_tensorboard(logdir)
    folder = tempfile.mkdtemp()
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        frame = stack.enter_context(frames())
        pages = {**TABS, **MORE}
        pictures = {name: Path(folder) / f"{name}.png" for name in pages}
        for name, picture in pictures.items():
            print(f"taking {name} ...", flush=True)
            address = urllib.parse.quote(board + pages[name])
            secs = settle * SLOW.get(name, 1)
            photograph(browser, f"{frame}{secs}?{address}", picture, secs)
        out.mkdir(parents=True, exist_ok=True)
        for picture in pictures.values():
            with Image.open(picture) as image:
                small = image.convert("RGB").quantize(COLOURS, dither=0)
            small.save(out / picture.name, optimize=True)
            print(f"{out / picture.name}: {(out / picture.name).stat().st_size // 1000} kB")


if __name__ == "__main__":
    sys.exit(main())
