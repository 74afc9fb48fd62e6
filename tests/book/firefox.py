"""A second real browser: Firefox without a window, driven by WebDriver BiDi.

Playwright drives a Firefox of its own make only, so this speaks the protocol that every Firefox
knows: a line of JSON for each command, and one for each answer and each event.
"""

import contextlib
import itertools
import json
import queue
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

SECONDS = 120  # in which an answer has to come
LISTENS = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
PROGRAM = shutil.which("firefox-esr") or shutil.which("firefox")
if Path("/snap/bin/firefox").exists():  # it sees neither our profile nor our pages
    PROGRAM = shutil.which("firefox-esr")
# What it may do by itself is none of a page's doing.
PREFERENCES = {
    "app.update.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
}


class Firefox:
    """One window, with all that its pages asked for and complained about."""

    def __init__(self, address):
        import websocket

        self.numbers, self.requests, self.complaints = itertools.count(1), [], []
        # A page may not take this door: whoever names an origin is sent away.
        self.socket = websocket.create_connection(
            f"{address}/session", timeout=SECONDS, suppress_origin=True
        )
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        [top] = self.call("browsingContext.getTree")["contexts"]
        self.window = {"context": top["context"]}

    def call(self, method, **parameters):
        """Give a command, take note of all events before its answer, and return that."""
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while (said := json.loads(self.socket.recv())).get("id") != number:
            self._note(said.get("method"), said.get("params", {}))
        if said["type"] == "error":
            raise RuntimeError(f"{method}: {said['message']}")
        return said["result"]

    def _note(self, event, told):
        if event == "network.beforeRequestSent":
            self.requests.append(told["request"]["url"])
        elif event == "log.entryAdded" and told["level"] == "error":
            self.complaints.append(told["text"])

    def close(self):
        self.socket.close()

    def go(self, url):
        self.call("browsingContext.navigate", url=url, wait="complete", **self.window)

    def resize(self, width, height):
        size = {"width": width, "height": height}
        self.call("browsingContext.setViewport", viewport=size, **self.window)

    def evaluate(self, expression):
        """Return what an expression, or its promise, comes to; the page's policy is not asked."""
        said = self.call(
            "script.evaluate",
            expression=f"Promise.resolve({expression}).then((value) => JSON.stringify(value))",
            target=self.window,
            awaitPromise=True,
        )
        if said["type"] == "exception":
            raise RuntimeError(said["exceptionDetails"]["text"])
        return json.loads(said["result"].get("value", "null"))

    def wait_until(self, condition):
        self.evaluate(
            f"""(async () => {{
              while (!({condition})) await new Promise((done) => setTimeout(done, 20));
            }})()"""
        )


@contextlib.contextmanager
def started():
    """Yield a Firefox that has never been anywhere, and end it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in PREFERENCES.items()]
        with open(f"{folder}/user.js", "w", encoding="utf-8") as file:
            file.writelines(lines)
        command = [PROGRAM, "--headless", "--no-remote", "--profile", folder]
        process = subprocess.Popen(
            [*command, "--remote-debugging-port=0"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = queue.SimpleQueue()
        reader = threading.Thread(target=_read, args=(process.stderr, said), daemon=True)
        reader.start()
        try:
            with contextlib.closing(Firefox(_address(said))) as window:
                yield window
        finally:
            process.kill()
            process.wait()
            reader.join()
            process.stderr.close()


def _read(lines, said):
    """Read all that it says, so that it never waits for a reader."""
    for line in lines:
        said.put(line)


def _address(said):
    """Return where it listens, which it says among other words."""
    while True:
        try:
            found = LISTENS.search(said.get(timeout=SECONDS))
        except queue.Empty:
            raise RuntimeError(f"Firefox did not listen in {SECONDS} seconds") from None
        if found:
            return found[1]
