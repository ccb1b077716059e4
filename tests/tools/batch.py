"""Commands of kiln from processes that stay: starting one with sanitizers takes longer than most commands.

    done = batch.run([kiln, "check", "matmul.co"], folder, env, timeout)

gives what `subprocess.run` would have given, with bytes as text in latin-1. Each thread has its own `kiln
--batch` (cli/batch.h) for each binary. A command in which that process ends (a check of ours, a
sanitizer's finding, a signal) is run again alone, so that what it says is what it says to everybody.
`finish` ends the processes and tells what they found at their end: leaks.
"""

import os
import selectors
import subprocess
import tempfile
import threading
import time

ENCODING = "latin-1"
_COMMANDS_MAX = 400  # of one process; what leaks in it is looked for at its end
_local = threading.local()
_lock = threading.Lock()
_alive = []  # every worker of every thread
_endings = []  # what workers said as they ended
_without = set()  # binaries that ended in their very first command: they may not know --batch


class Gone(Exception):
    """The process has ended, or says something else than an answer."""


class Worker:
    def __init__(self, kiln, env):
        self.commands = 0
        self.ended = False
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [kiln, "--batch"],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
        )
        self.out = self.process.stdout
        os.set_blocking(self.out.fileno(), False)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.out, selectors.EVENT_READ)
        self.buffer = b""
        with _lock:
            _alive.append(self)

    def ask(self, words, timeout):
        """(exit code, output, errors) of one command."""
        self.commands += 1
        data = b"".join(os.fsencode(word) + b"\0" for word in words)
        try:
            self.process.stdin.write(b"%d\n" % len(words) + data)
            self.process.stdin.flush()
        except OSError:
            raise Gone from None
        until = time.monotonic() + timeout
        while b"\n" not in self.buffer:
            self._more(until)
        line, _, self.buffer = self.buffer.partition(b"\n")
        try:
            code, out, err = map(int, line.split())
        except ValueError:
            raise Gone from None
        while len(self.buffer) < out + err:
            self._more(until)
        texts = self.buffer[:out], self.buffer[out : out + err]
        self.buffer = self.buffer[out + err :]
        return code, *(text.decode(ENCODING) for text in texts)

    def _more(self, until):
        if not self.selector.select(max(0, until - time.monotonic())):
            raise TimeoutError
        data = self.out.read(1 << 20)
        if not data:
            raise Gone
        self.buffer += data

    def end(self, kill=False):
        """What the process says at its end; '' when all is well."""
        with _lock:
            if self not in _alive:
                return ""
            _alive.remove(self)
        self.ended = True
        if kill:
            self.process.kill()
        try:
            self.process.stdin.close()
        except OSError:
            pass  # it has ended
        code = self.process.wait()
        self.out.close()
        self.selector.close()
        self.errors.seek(0)
        said = self.errors.read().decode(ENCODING)
        self.errors.close()
        return f"`kiln --batch` ended with {code}:\n{said}" if code and not kill else ""


def run(argv, folder, env, timeout):
    """Like subprocess.run; raises subprocess.TimeoutExpired and OSError."""
    workers = _local.__dict__.setdefault("workers", {})
    kiln = argv[0]
    if kiln in _without:
        return _alone(argv, folder, env, timeout)
    worker = workers.get(kiln)
    if worker is None or worker.ended:
        worker = workers[kiln] = Worker(kiln, env)
    try:
        code, out, err = worker.ask([os.path.abspath(folder), *argv[1:]], timeout)
    except Gone:
        del workers[kiln]
        worker.end(kill=True)
        if worker.commands == 1:
            _without.add(kiln)
        return _alone(argv, folder, env, timeout)
    except TimeoutError:
        del workers[kiln]
        worker.end(kill=True)
        raise subprocess.TimeoutExpired(argv, timeout) from None
    if worker.commands >= _COMMANDS_MAX:
        del workers[kiln]
        if said := worker.end():
            _endings.append(said)
    return subprocess.CompletedProcess(argv, code, out, err)


def _alone(argv, folder, env, timeout):
    return subprocess.run(
        argv,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding=ENCODING,
        timeout=timeout,
        check=False,
    )


def finish():
    """Ends all processes; what they said, '' when all is well."""
    with _lock:
        workers = list(_alive)
    _endings.extend(said for worker in workers if (said := worker.end()))
    text = "\n".join(_endings)
    _endings.clear()
    return text
