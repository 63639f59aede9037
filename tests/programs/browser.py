"""A headless Chromium that tests drive: it opens a page, evaluates JavaScript, presses keys and
clicks, and takes pictures. It speaks the Chrome DevTools Protocol over two pipes, so that nothing
but Chromium is needed, and no port is open.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LIMIT_S = 60
KEYS = {"Enter": ("Enter", 13, "\r"), "Tab": ("Tab", 9, ""), " ": ("Space", 32, " "),
        "ArrowLeft": ("ArrowLeft", 37, ""), "ArrowUp": ("ArrowUp", 38, ""),
        "ArrowRight": ("ArrowRight", 39, ""), "ArrowDown": ("ArrowDown", 40, ""),
        "Home": ("Home", 36, ""), "End": ("End", 35, "")}


class Browser:
    def __init__(self, folder, width=1280, height=1000, dark=False):
        down, up = os.pipe(), os.pipe()  # commands, answers

        def as_chromium_expects():
            commands, answers = os.dup(down[0]), os.dup(up[1])
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        self.process = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--remote-debugging-pipe", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--disable-background-networking",
             "--host-resolver-rules=MAP * 0.0.0.0", f"--user-data-dir={folder}/profile",
             f"--window-size={width},{height}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(folder)}, pass_fds=(3, 4),
            preexec_fn=as_chromium_expects)
        os.close(down[0])
        os.close(up[1])
        self.out, self.into = down[1], up[0]
        self.buffer, self.number, self.session = b"", 0, None
        self.errors, self.requests = [], []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Performance", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.scheme("dark" if dark else "light")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.into)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # --- the protocol

    def _read(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.into], [], [], left)[0]:
                raise TimeoutError("Chromium does not answer")
            some = os.read(self.into, 1 << 20)
            if not some:
                raise EOFError("Chromium has ended")
            self.buffer += some
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        self._note(message)
        return message

    def _note(self, message):
        parameters = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif message.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])
        elif message.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + LIMIT_S
        while True:
            answer = self._read(deadline)
            if answer.get("id") != self.number:
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            return answer["result"]

    # --- a page

    def open(self, path):
        """Returns the seconds until the page has drawn itself."""
        self.errors.clear()
        self.requests.clear()
        started = time.monotonic()
        self.call("Page.navigate", url=path.as_uri())
        while self("document.readyState") != "complete":
            time.sleep(0.01)
        self("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")
        return time.monotonic() - started

    def __call__(self, expression):
        """The value of an expression, or of its promise."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description"))
        return result["result"].get("value")

    def frame(self):
        """Waits until what was asked for is drawn."""
        self("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def press(self, key, shift=False):
        code, number, text = KEYS.get(key, (key, ord(key.upper()[0]), key))
        name = " " if key == " " else key
        common = {"key": name, "code": code, "windowsVirtualKeyCode": number,
                  "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text,
                  **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)
        self.frame()

    def click(self, x, y):
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, clickCount=1,
                      button="none" if kind == "mouseMoved" else "left")
        self.frame()

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": name}])

    def picture(self, path, whole=False):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def heap_bytes(self):
        metrics = {m["name"]: m["value"] for m in self.call("Performance.getMetrics")["metrics"]}
        return metrics["JSHeapUsedSize"]
