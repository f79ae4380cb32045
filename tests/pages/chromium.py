# SPDX-License-Identifier: Apache-2.0
"""A real Chromium, driven through its DevTools protocol over two pipes: JSON messages that end with NUL.

https://chromedevtools.github.io/devtools-protocol lists the methods.
"""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

FLAGS = ("--headless", "--no-sandbox", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--disable-gpu", "--no-first-run", "--hide-scrollbars", "--mute-audio",
         "--window-size=1280,900", "--force-device-scale-factor=1", "--remote-debugging-pipe")
SECONDS = 120  # that an answer may take

KEYS = {"Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35,
        "Enter": 13, "Space": 32, "PageDown": 34, "PageUp": 33}


def find():
    """The browser's path, or None."""
    return shutil.which("chromium")


class Browser:
    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        # The browser reads descriptor 3 and writes descriptor 4.
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "sh", find(), *FLAGS,
             f"--user-data-dir={self.profile.name}", "about:blank"],
            pass_fds=(commands, answers), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.sent = 0
        self.read = b""
        self.events = []

    def close(self):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
        self.process.wait()
        os.close(self.commands)
        os.close(self.answers)
        self.profile.cleanup()

    def message(self):
        deadline = time.monotonic() + SECONDS
        while b"\0" not in self.read:
            if not select.select([self.answers], [], [], max(0, deadline - time.monotonic()))[0]:
                raise RuntimeError(f"Chromium says nothing for {SECONDS} s")
            part = os.read(self.answers, 1 << 20)
            if not part:
                raise RuntimeError("Chromium has ended")
            self.read += part
        text, _, self.read = self.read.partition(b"\0")
        return json.loads(text)

    def call(self, method, session=None, **parameters):
        self.sent += 1
        command = {"id": self.sent, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data):]
        while True:
            message = self.message()
            if message.get("id") == self.sent:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)


class Page:
    """One tab. `problems` are console errors and exceptions, `requests` all addresses asked for."""

    def __init__(self, browser):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM", "Accessibility"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def open(self, path):
        """Opens a file, and returns the seconds until it is ready."""
        self.browser.events.clear()
        begin = time.monotonic()
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        while not self.run("document.readyState === 'complete'"):
            time.sleep(.005)
        return time.monotonic() - begin

    def run(self, expression):
        """The value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def press(self, key, modifiers=0):
        for kind in ("keyDown", "keyUp"):
            typed = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}  # what a summary waits for
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key],
                      modifiers=modifiers, **typed)

    def point(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def choose(self, select, value):
        self.run(f"(() => {{ const s = document.getElementById({json.dumps(select)}); s.value = {json.dumps(value)};"
                 " s.dispatchEvent(new Event('change')); })()")

    def media(self, scheme="light", medium="screen"):
        self.call("Emulation.setEmulatedMedia", media=medium,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")  # it is told

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def picture(self, path):
        """A screenshot of what is in the window, as PNG."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def _events(self, method):
        self.run("0")  # so that all earlier ones have arrived
        return [e["params"] for e in self.browser.events
                if e.get("method") == method and e.get("sessionId") == self.session]

    def problems(self):
        found = [e["exceptionDetails"]["text"] for e in self._events("Runtime.exceptionThrown")]
        found += [e["type"] + ": " + str(e["args"]) for e in self._events("Runtime.consoleAPICalled")
                  if e["type"] in ("error", "warning", "assert")]
        return found + [e["entry"]["text"] for e in self._events("Log.entryAdded")]

    def requests(self):
        return [e["request"]["url"] for e in self._events("Network.requestWillBeSent")]

    def named(self):
        """(role, name) of everything that can be focused, as a screen reader gets it."""
        found = []
        for node in self.call("Accessibility.getFullAXTree")["nodes"]:
            properties = {p["name"]: p["value"].get("value") for p in node.get("properties", ())}
            if properties.get("focusable") and not node.get("ignored"):
                found.append((node["role"]["value"], node.get("name", {}).get("value", "")))
        return found
