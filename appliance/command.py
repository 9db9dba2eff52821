"""The one place that starts a process: an argument list, no shell, a fixed locale, a time limit."""

from __future__ import annotations

import logging
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from typing import IO

import msgspec

from appliance.errors import Bug, Failed
from appliance.message import Message

log = logging.getLogger(__name__)

# C.UTF-8 speaks English like C, and lets the tools write names in other letters into their JSON.
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
# Every service that Larder switches has a native unit. To keep the links of System V in step as well would have systemd
# read all units anew up to three times for each (systemd's docs/ENVIRONMENT.md).
ENVIRONMENT["SYSTEMCTL_SKIP_SYSV"] = "1"
# A process that does not end after SIGKILL sits in the kernel (a suspended pool). It is left there, not waited for.
SECONDS_TO_DIE = 2.0
SECONDS_BETWEEN_LOOKS = 1.0
SECONDS_TO_END = 30.0  # for what was asked to end and has something to put away
# Open files that every process holds too until it has ended: the locks of the job that it belongs to.
HELD_BY_ALL: set[int] = set()
Process = subprocess.Popen[bytes]
NOWHERE = subprocess.DEVNULL  # for an output that nobody reads
PART = 64 * 1024  # bytes read at once
MOST_SAID = 4000  # bytes kept of what a command complains about


class Result(msgspec.Struct, frozen=True):
    """What a process left: exit status, both outputs as text, and how long it took in seconds."""

    argv: tuple[str, ...]
    status: int
    stdout: str
    stderr: str
    seconds: float


class CommandFailed(Failed):
    """The command ended with a status that was not accepted."""

    def __init__(self, result: Result) -> None:
        self.result = result
        super().__init__(
            Message("{program} ended with status {status}", program=result.argv[0], status=result.status),
            result.stderr or result.stdout,
        )


class CommandMissing(Failed):
    """The tool is not installed: a fact to show, not a crash."""


class CommandTimedOut(Failed):
    """The command did not end in its time and was killed; ``pid`` is set where even that did not end it."""

    def __init__(self, argv: Sequence[str], seconds: float, pid: int | None) -> None:
        self.pid = pid
        said = Message("{program} did not answer within {seconds} seconds", program=argv[0], seconds=f"{seconds:.0f}")
        if pid:
            said = Message(
                "{said} and could not be ended: it waits in the kernel, and may still take effect once the "
                "disks answer",
                said=said,
            )
        super().__init__(said)


def run(
    argv: Sequence[str],
    *,
    timeout: float = 60,
    given: str | bytes | None = None,
    accept: Collection[int] = (0,),
    meanwhile: Callable[[], None] | None = None,
    holding: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> Result:
    """Run ``argv`` and return its result.

    ``given`` goes to standard input, which is the way for secrets: it is neither logged nor seen in ``ps``.
    ``meanwhile`` is called every second while it runs; what it raises ends the process and goes on to the
    caller. ``holding``: an open file that the process holds too, until it has ended. ``environment``: variables
    beside ENVIRONMENT. Raises CommandFailed for a status not in ``accept``, CommandMissing, CommandTimedOut;
    Failed where no process starts.
    """
    if not argv or any("\0" in word for word in argv):
        raise Bug("a command needs words without NUL bytes")
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE if given is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**ENVIRONMENT, **(environment or {})},
            start_new_session=True,
            pass_fds=(*HELD_BY_ALL, *(() if holding is None else (holding,))),
        )
    except FileNotFoundError as error:
        raise CommandMissing(Message("{program} is not installed on this system", program=argv[0])) from error
    except PermissionError as error:
        raise CommandMissing(Message("{program} may not be run here", program=argv[0])) from error
    except OSError as error:
        raise Failed(Message("{program} could not be started", program=argv[0]), str(error)) from error
    try:
        given = given.encode() if isinstance(given, str) else given
        out, err = wait_for_output(process, given, started + timeout, meanwhile)
    except subprocess.TimeoutExpired as error:
        raise CommandTimedOut(argv, timeout, kill_process(process)) from error
    seconds = time.monotonic() - started
    result = Result(
        tuple(argv), process.returncode, out.decode(errors="replace"), err.decode(errors="replace"), seconds
    )
    log.debug("%s: status %d in %.2f s", " ".join(argv), result.status, seconds)
    if result.status not in accept:
        raise CommandFailed(result)
    return result


def wait_for_output(
    process: subprocess.Popen[bytes], given: bytes | None, until: float, meanwhile: Callable[[], None] | None
) -> tuple[bytes, bytes]:
    """Both outputs of a process. Raises TimeoutExpired, and what ``meanwhile`` raises after ending the process."""
    while meanwhile is not None:
        try:
            return process.communicate(given, timeout=max(min(SECONDS_BETWEEN_LOOKS, until - time.monotonic()), 0))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= until:
                raise
        given = None  # it is on its way; handing it over twice is an error
        try:
            meanwhile()
        except BaseException:
            kill_process(process)
            raise
    return process.communicate(given, timeout=max(until - time.monotonic(), 0))


def start_process(
    argv: Sequence[str], *, stdin: int = subprocess.DEVNULL, stdout: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """A process whose output is read as it comes. ``stdin`` and ``stdout`` may be open files.
    Raises CommandMissing, Failed."""
    try:
        return subprocess.Popen(
            list(argv),
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            start_new_session=True,
            pass_fds=tuple(HELD_BY_ALL),
        )
    except (FileNotFoundError, PermissionError) as error:
        raise CommandMissing(Message("{program} is not installed on this system", program=argv[0])) from error
    except OSError as error:
        raise Failed(Message("{program} could not be started", program=argv[0]), str(error)) from error


def run_bounded(argv: Sequence[str], *, most: int, timeout: float, accept: Collection[int] = (0,)) -> Result:
    """Like ``run`` for a command whose words come from elsewhere: one that says more than ``most`` bytes is ended.

    Raises what ``run`` raises; Failed where it says more.
    """
    started = time.monotonic()
    process = start_process(argv)
    out, said = bytearray(), bytearray()
    try:
        for part in read_parts(process, said, timeout, until=started + timeout):
            out += part
            if len(out) > most:
                raise Failed(Message("{program} said more than {most} bytes", program=argv[0], most=most))
        process.wait(max(started + timeout - time.monotonic(), 0))
    except (TimeoutError, subprocess.TimeoutExpired) as error:
        raise CommandTimedOut(argv, timeout, kill_process(process)) from error
    finally:
        kill_process(process)
    text, complaints = out.decode(errors="replace"), said.decode(errors="replace")
    result = Result(tuple(argv), process.returncode, text, complaints, time.monotonic() - started)
    if result.status not in accept:
        raise CommandFailed(result)
    return result


def first_lines(argv: Sequence[str], most: int, *, timeout: float) -> tuple[list[bytes], bool]:
    """At most so many lines of what a command says, and whether that was all; it is ended once there are enough.

    For what may say more than a small box can hold. Raises CommandFailed, CommandMissing; late is like enough.
    """
    started = time.monotonic()
    process = start_process(argv)
    lines: list[bytes] = []
    out, err = process.stdout, process.stderr
    try:
        for line in in_time(out, started + timeout):
            if len(lines) == most:
                return lines, False
            lines.append(line)
        try:
            status = process.wait(max(started + timeout - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            return lines, False
        said = err.read(4000).decode(errors="replace") if err else ""
        if status:
            raise CommandFailed(Result(tuple(argv), status, "", said, time.monotonic() - started))
        return lines, True
    finally:
        kill_process(process)


def read_lines(argv: Sequence[str], *, silence: float) -> Generator[bytes]:
    """Each line that a command prints, without its end, as it comes: for what may say more than memory should hold.

    It is ended when it says nothing for ``silence`` seconds, and when the caller stops asking for more. Raises what
    ``run`` raises; that it failed is known only after its last line.
    """
    started = time.monotonic()
    process = start_process(argv)
    said = bytearray()
    try:
        rest = b""
        for part in read_parts(process, said, silence):
            whole = (rest + part).split(b"\n")
            rest = whole.pop()
            yield from whole
        if rest:
            yield rest
        process.wait(silence)
    except (TimeoutError, subprocess.TimeoutExpired) as error:
        raise CommandTimedOut(argv, silence, kill_process(process)) from error
    finally:
        kill_process(process)
    if process.returncode:
        text = said.decode(errors="replace")
        raise CommandFailed(Result(tuple(argv), process.returncode, "", text, time.monotonic() - started))


def watch(
    argv: Sequence[str], *, take: Callable[[bytes], None], look: Callable[[], None], most_said: int = MOST_SAID
) -> Result:
    """Run a command that may last for hours: its output goes to ``take`` as it comes, and
    ``look`` is called every second.

    What either raises asks it to end (SIGTERM), so that it can put away what it has, and goes on to the
    caller. The beginning of its complaints, ``most_said`` bytes, is in the result, whatever its status.
    Raises CommandMissing, Failed.
    """
    started = time.monotonic()
    process = start_process(argv)
    said, looked = bytearray(), started
    try:
        for part in read_parts(process, said, SECONDS_BETWEEN_LOOKS, most_said=most_said, idle=True):
            if part:
                take(part)
            if time.monotonic() - looked >= SECONDS_BETWEEN_LOOKS:
                looked = time.monotonic()
                look()
        process.wait(SECONDS_TO_END)
    except BaseException:
        end_process(process)
        wait_for_exit(process, SECONDS_TO_END)
        raise
    finally:
        kill_process(process)
    return Result(tuple(argv), process.returncode, "", said.decode(errors="replace"), time.monotonic() - started)


def read_parts(
    process: subprocess.Popen[bytes],
    said: bytearray,
    silence: float,
    until: float = float("inf"),
    *,
    most_said: int = MOST_SAID,
    idle: bool = False,
) -> Iterator[bytes]:
    """What a process prints, a part at a time; the beginning of its complaints goes to ``said``. Raises
    TimeoutError after a silence of so many seconds, and at the moment ``until``. ``idle``: such a silence
    is an empty part instead."""
    poll, open_ones = select.poll(), {stream.fileno() for stream in (process.stdout, process.stderr) if stream}
    err = process.stderr.fileno() if process.stderr else -1
    for handle in open_ones:
        poll.register(handle, select.POLLIN)
    while open_ones:
        ready = poll.poll(max(min(silence, until - time.monotonic()), 0) * 1000)
        if not ready:
            if not idle:
                raise TimeoutError
            yield b""
        for handle, _event in ready:
            part = os.read(handle, PART)
            if not part:
                poll.unregister(handle)
                open_ones.discard(handle)
            elif handle == err:
                said += part[: max(most_said - len(said), 0)]
            else:
                yield part


def in_time(stream: IO[bytes] | None, until: float) -> Iterator[bytes]:
    """The lines of a stream as they come, as far as they come before that moment: nothing that hangs is waited for."""
    rest = b""
    while stream and select.select([stream], [], [], max(until - time.monotonic(), 0))[0]:
        part = os.read(stream.fileno(), 65536)
        if not part:
            if rest:
                yield rest
            return
        *lines, rest = (rest + part).split(b"\n")
        yield from lines


def wait_for_exit(process: Process, seconds: float) -> int | None:
    """The status of a process; None where it has not ended in that time."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to end (SIGTERM). It is not waited for."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass


def kill_process(process: subprocess.Popen[bytes]) -> int | None:
    """Kill a process and its children; its pid where the kernel will not let it go, else None."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        process.wait(SECONDS_TO_DIE)
    except subprocess.TimeoutExpired:
        return process.pid
    finally:
        for stream in (process.stdout, process.stderr, process.stdin):
            if stream:
                stream.close()
    return None
