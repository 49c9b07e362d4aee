"""What Python runs after an agent's last line is part of the run: recorded, replayed, guarded.

Each way to the end is one piece of `ENDS`. All of them run in one agent. `TRACEFORK_EXAMPLES` (see
`tox -e fuzz`) runs each one alone, too.
"""

from __future__ import annotations

import os
import textwrap
from collections import Counter

import pytest

from tracefork_core import Tape
from tracefork_testkit import ProviderServer

from .conftest import Done, Shell

HEAD = """\
import atexit, gc, os, signal, subprocess, sys, threading, weakref
import httpx2

URL = os.environ["PROVIDER"] + "/echo"

def post(word):
    return httpx2.post(URL, content=word.encode()).text

class Posts:
    def __init__(self, word):
        self.word = word
    def __del__(self):
        print("finalized", post(self.word), flush=True)

gc.set_threshold(10**7)  # The collector would call finalizers at other places in each run.
"""

ENDS = {
    "a child process": """
        CODE = '''
        import atexit, os, sys, httpx2
        def post(word):
            return httpx2.post(os.environ["PROVIDER"] + "/echo", content=word.encode())
        def report(kind, error, traceback):
            post("child: " + kind.__name__)
        sys.excepthook = report
        atexit.register(post, "child's handler")
        1 / 0
        '''
        import textwrap
        print(subprocess.run([sys.executable, "-c", textwrap.dedent(CODE)]).returncode, flush=True)
        """,
    "a process of multiprocessing": """
        import multiprocessing
        def work():
            atexit.register(post, "process's handler")
            posts = Posts("process's object")
        process = multiprocessing.get_context("fork").Process(target=work)
        process.start()
        process.join()
        """,
    "a forked process": """
        if not os.fork():
            atexit.register(post, "fork's handler")
            sys.excepthook = lambda *error: post("fork: " + error[0].__name__)
            raise OSError
        print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
        """,
    "threading.excepthook": """
        threading.excepthook = lambda failed: post("thread: " + failed.exc_type.__name__)
        failing = threading.Thread(target=lambda: 1 / 0)
        failing.start()
        failing.join()
        """,
    "sys.unraisablehook": """
        sys.unraisablehook = lambda failed: post("unraisable: " + failed.exc_type.__name__)
        @atexit.register
        def fail():
            1 / 0
        """,
    "atexit": """
        atexit.register(post, "second handler")
        atexit.register(lambda: atexit.register(post, "Python calls this one neither"))
        atexit.register(post, "first handler")
        """,
    "weakref.finalize": """
        class Thing:
            pass
        thing = Thing()
        weakref.finalize(thing, post, "finalize")
        """,
    "an exporter": """
        class Exporter:
            def __init__(self):
                self.spans, self.ended = ["span 1", "span 2"], threading.Event()
                self.worker = threading.Thread(target=self.work, daemon=True)
                self.worker.start()
                atexit.register(self.shutdown)
            def work(self):
                self.ended.wait()
                for span in self.spans:
                    post(span)
            def shutdown(self):
                self.ended.set()
                self.worker.join()
        exporter = Exporter()
        """,
    "a logging handler": """
        import logging, logging.handlers
        class Sends(logging.handlers.MemoryHandler):
            def flush(self):
                for record in self.buffer:
                    post("log: " + record.getMessage())
                self.buffer.clear()
        logging.getLogger("agent").addHandler(Sends(100, flushLevel=99))
        logging.getLogger("agent").propagate = False
        logging.getLogger("agent").warning("one")
        """,
    "a pool": """
        from concurrent.futures import ThreadPoolExecutor
        ThreadPoolExecutor(1).submit(post, "pool")
        """,
    "a thread": "threading.Thread(target=post, args=['thread']).start()",
    "the end of a loop": """
        import asyncio
        async def background():
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.to_thread(post, "cancelled")
        async def generated():
            try:
                yield 1
            finally:
                post("generator")
        async def main():
            main.kept = asyncio.create_task(background()), generated()
            await main.kept[1].__anext__()
        asyncio.run(main())
        """,
    "a task of a loop that was left": """
        import asyncio
        async def left():
            try:
                await asyncio.sleep(60)
            finally:
                post("destroyed")
        def leave():
            loop = asyncio.new_event_loop()
            leave.kept = loop.create_task(left())
            leave.kept._log_destroy_pending = False
            loop.run_until_complete(asyncio.sleep(0))
            del leave.kept
            loop.close()
        leave()
        """,
    "an object of a module": """
        import aiohttp, asyncio
        async def posted(word):
            async with aiohttp.ClientSession() as client, client.post(URL, data=word) as answer:
                return await answer.text()
        class PostsLast:
            def __del__(self):
                print("finalized", asyncio.run(posted(b"module")), flush=True)
        asyncio.run(posted(b"warm"))
        last = PostsLast()
        """,
    "an object of a frame, and sys.excepthook": """
        def report(kind, error, traceback):
            post("crash: " + kind.__name__)
            sys.__excepthook__(kind, error, traceback)
        sys.excepthook = report
        def crash():
            held = Posts("frame")
            raise KeyError(post("crashing"))
        crash()
        """,
}
ALONE = {
    "an exit in sys.excepthook": """
        def report(*error):
            post("crash")
            sys.exit(7)
        sys.excepthook = report
        1 / 0
        """,
    "an error in sys.excepthook, and a signal": """
        def stop(*signal):
            post("SIGTERM")
        signal.signal(signal.SIGTERM, stop)
        atexit.register(os.kill, os.getpid(), signal.SIGTERM)
        def report(*error):
            raise ValueError(post("crash"))
        sys.excepthook = report
        1 / 0
        """,
}
PROGRAMS = {"all of them": "\n".join(map(textwrap.dedent, ENDS.values())), **ALONE}
if "TRACEFORK_EXAMPLES" in os.environ:
    PROGRAMS |= ENDS


def posted(provider: ProviderServer, since: int) -> Counter[str]:
    """Return the words that the provider was sent."""
    return Counter(request.body.decode() for request in provider.requests[since:])


def agents_part(done: Done) -> str:
    """Return what the agent wrote to stderr, without what no two processes have in common."""
    agent = done.err.partition("● recorded")[0]
    lines = [line for line in agent.splitlines() if "multi-threaded" not in line]
    return "\n".join(line for line in lines if "os.fork()" not in line)


@pytest.mark.parametrize("end", PROGRAMS)
def test_what_follows_the_last_line_is_recorded_and_replayed(
    end: str, shell: Shell, provider: ProviderServer
) -> None:
    """Status, output and requests are those of plain Python. A replay sends nothing."""
    shell.write("ends.py", HEAD + textwrap.dedent(PROGRAMS[end]))
    begun = len(provider.requests)
    plain = shell.python("ends.py")
    asked = posted(provider, begun)
    assert asked, plain.err
    begun = len(provider.requests)
    recorded = shell.tracefork("record", "ends.py")
    assert posted(provider, begun) == asked, recorded.err
    assert (recorded.exit, recorded.out) == (plain.exit, plain.out), recorded.err
    assert agents_part(recorded) == agents_part(plain)
    with Tape.open(shell.folder / "ends.tape") as tape:
        on_tape = [exchange.request_body.decode() for exchange in tape.exchanges]
    assert Counter(on_tape) == asked
    begun = len(provider.requests)
    replayed = shell.tracefork("replay", "ends.tape")
    assert len(provider.requests) == begun
    assert (replayed.exit, replayed.out) == (0, plain.out), replayed.err


LIBRARY = """\
import os, urllib.request

class Ends:
    def __init__(self, word):
        self.word = word
    def __del__(self):
        try:
            print(urllib.request.urlopen(URL, self.word).read(), flush=True)
        except BaseException as error:
            print(type(error).__name__, flush=True)
        os.posix_spawn("/bin/sh", ["sh", "-c", "echo >>" + FILE], os.environ)

URL = os.environ["PROVIDER"] + "/echo"
FILE = os.path.abspath("started")
urllib.request.urlopen("data:,").read()
"é".encode("idna")
ends = Ends(b"late")
"""


def test_what_runs_after_the_session_is_named_and_refused_at_replay(
    shell: Shell, provider: ProviderServer
) -> None:
    """An object of a library lives longer than the session, but the guard lives longer than it."""
    shell.write("site-packages/library.py", LIBRARY)
    shell.write("ends.py", "import sys\nsys.path.append('site-packages')\nimport library\n")
    begun = len(provider.requests)
    started = shell.folder / "started"
    recorded = shell.tracefork("record", "ends.py")
    assert posted(provider, begun) == {"late": 1}, recorded.err
    assert (
        f"after the end of the recording: a thread without user code reached {provider.url[7:]}"
        in (recorded.err)
    )
    assert "started sh" in recorded.err
    assert started.read_text() == "\n"
    begun = len(provider.requests)
    replayed = shell.tracefork("replay", "ends.tape")
    assert (replayed.exit, replayed.out) == (0, "EgressError\n"), replayed.err
    assert len(provider.requests) == begun
    assert f"tried to reach {provider.url[7:]}" in replayed.err
    assert started.read_text() == "\n"


DAEMON = """\
import atexit, os, threading, time, httpx2

def work():
    ended.wait()
    while True:
        try:
            httpx2.post(os.environ["PROVIDER"] + "/echo", content=b"daemon")
        except BaseException:
            time.sleep(0.001)

ended = threading.Event()
atexit.register(ended.set)
threading.Thread(target=work, daemon=True).start()
"""


def test_a_daemon_thread_sends_nothing_until_the_process_is_gone(
    shell: Shell, provider: ProviderServer
) -> None:
    """It still runs after the session of a replay has ended."""
    shell.write("daemon.py", DAEMON)
    shell.tracefork("record", "daemon.py")
    begun = len(provider.requests)
    shell.tracefork("replay", "daemon.tape")
    assert len(provider.requests) == begun
