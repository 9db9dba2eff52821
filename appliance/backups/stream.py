"""Send one dataset's stream from ``zfs send`` to ``zfs receive``, counting bytes; stopping
leaves a state to resume from.

The bytes go from pipe to pipe in the kernel (splice(2)), never through Python. To stop, only the sender is ended: the
receiver then keeps what has arrived (``receive -s``), and the next run goes on there.
"""

from __future__ import annotations

import fcntl
import os
import select
import time
from collections.abc import Callable, Sequence

import msgspec

from appliance import command
from appliance.backups import stream_header
from appliance.backups.rate_limit import RateLimit, unlimited
from appliance.errors import Failed
from appliance.message import Message

PART = 1024 * 1024  # bytes moved at once
PIPE = 1024 * 1024  # of a pipe; the largest that the kernel allows without a privilege (/proc/sys/fs/pipe-max-size)
SECONDS_BETWEEN_LOOKS = 1.0
SHORTEST_PAUSE, LONGEST_PAUSE = 0.0001, 0.1  # seconds until it is worth moving bytes again
SILENCE = 900.0  # seconds without a byte: disks that spin up or a pool that frees space take minutes
SECONDS_TO_FINISH = 1800.0  # at the end of a stream ZFS writes what it still has in memory
SECONDS_TO_LET_GO = 120.0  # for another computer to keep what has arrived of a stream that was stopped
MOST_SAID = 4000
POOL_STOPPED = Message(
    "A disk does not answer. Put it back, then restart the box. What has arrived stays, and the next run "
    "goes on from there."
)


class NotReceived(Failed):
    """The receiver ended with a status other than 0, which says where it failed when it is ssh's.

    ``sender_status`` and ``sender_said``: how the sender ended, None where it was still there.
    """

    def __init__(self, status: int, said: str, sender_status: int | None = 0, sender_said: str = "") -> None:
        self.status, self.sender_status, self.sender_said = status, sender_status, sender_said
        super().__init__(Message("The copy was not received"), said)


def never() -> bool:
    return False


class Stream(msgspec.Struct):
    """A sender and a receiver at work. ``stopped``: whether the pool that receives has; ``moved``: bytes so far."""

    sender: command.Process
    receiver: command.Process
    source: int
    sink: int
    stopped: Callable[[], bool] = never
    moved: int = 0
    size: int = PIPE  # of each pipe
    pause: float = SHORTEST_PAUSE
    waited_at: int = 0  # how many bytes had moved when it last waited
    said: dict[int, bytearray] = msgspec.field(default_factory=dict)  # by the file that a process complains to

    def __post_init__(self) -> None:
        for process in (self.sender, self.receiver):
            if process.stderr:
                os.set_blocking(process.stderr.fileno(), False)
                self.said[process.stderr.fileno()] = bytearray()

    def text(self, process: command.Process) -> str:
        return self.said[process.stderr.fileno()].decode(errors="replace").strip() if process.stderr else ""

    def listen(self) -> None:
        """Take what both complain about, so that neither waits for a reader."""
        for handle, said in self.said.items():
            try:
                while part := os.read(handle, 65536):
                    said += part[: MOST_SAID - len(said)]
            except BlockingIOError:
                pass

    def wait_for_room(self) -> None:
        """Wait until there are bytes to move, or room for them, at most a second; then
        until it is worth moving them."""
        poll = select.poll()
        if select.select([self.source], [], [], 0)[0]:
            poll.register(self.sink, select.POLLOUT)
        else:
            poll.register(self.source, select.POLLIN)
        for handle in self.said:
            poll.register(handle, select.POLLIN)
        poll.poll(SECONDS_BETWEEN_LOOKS * 1000)
        self.listen()
        # ssh takes and gives 16 KiB at a time: to be woken for each costs more than to move them.
        # Half a pipe comes together, or comes free, in the moment that this waits.
        together, self.waited_at = self.moved - self.waited_at, self.moved
        if together:
            self.pause *= min(self.size / 2 / together, 2)
            self.pause = min(max(self.pause, SHORTEST_PAUSE), LONGEST_PAUSE)
        time.sleep(self.pause)

    def check_silence(self, since: float) -> None:
        """Raises Failed where nothing moves and nothing will."""
        silence = time.monotonic() - since
        if silence > SECONDS_BETWEEN_LOOKS and self.stopped():
            raise Failed(Message("The pool that receives has stopped"), POOL_STOPPED)
        if silence > SILENCE:
            raise Failed(
                Message("The copy stopped moving"),
                Message(
                    "Nothing was read or written for {minutes} minutes. Look at the disks and their cables. "
                    "If the pool of the copies has stopped, restart the box.",
                    minutes=f"{SILENCE / 60:.0f}",
                ),
            )

    def relay_header(self, tell: Callable[[int], None]) -> None:
        """Let the beginning through where it is that of a single snapshot.
        Raises Failed, and the receiver has got nothing."""
        began, header = time.monotonic(), b""
        while len(header) < stream_header.LENGTH:
            if not select.select([self.source], [], [], SECONDS_BETWEEN_LOOKS)[0]:
                self.listen()
                self.check_silence(began)
                tell(0)
            elif part := os.read(self.source, stream_header.LENGTH - len(header)):
                header += part
            else:
                return  # the sender says why
        if not stream_header.is_single(header):
            raise Failed(
                Message("The other computer does not send exactly one snapshot"),
                Message("Nothing of it was received. Find out who has changed that computer."),
            )
        try:
            self.moved += os.write(self.sink, header)  # far less than an empty pipe takes at once
        except BrokenPipeError:
            return  # the receiver says why

    def relay(self, tell: Callable[[int], None], limit: RateLimit) -> None:
        """Move bytes until the sender has no more or the receiver takes none. Raises Failed after a long silence."""
        last = told = time.monotonic()
        while True:
            try:
                moved = os.splice(self.source, self.sink, PART, flags=os.SPLICE_F_NONBLOCK | os.SPLICE_F_MOVE)
            except BlockingIOError:
                self.check_silence(last)
                self.wait_for_room()
                moved = -1
            except BrokenPipeError:
                return
            if moved == 0:
                return
            if moved > 0:
                self.moved += moved
                if delay := limit.delay(moved):
                    time.sleep(delay)
                last = time.monotonic()
            now = time.monotonic()
            if now - told >= SECONDS_BETWEEN_LOOKS:
                told = now
                tell(self.moved)

    def finish(self, process: command.Process, seconds: float) -> int | None:
        """The status of a process once it has ended; None where it has not in that time, or cannot
        because the pool stopped."""
        until = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < until and not self.stopped():
            self.listen()
            command.wait_for_exit(process, SECONDS_BETWEEN_LOOKS)
        self.listen()
        return process.returncode


def send_stream(
    sender: Sequence[str],
    receiver: Sequence[str],
    tell: Callable[[int], None],
    rate: Callable[[], int] = unlimited,
    stopped: Callable[[], bool] = never,
    *,
    may_end: bool = False,
    foreign: bool = False,
) -> int:
    """Run both commands with the stream between them; the bytes that went through.

    ``tell`` is called every second with the bytes so far; what it raises stops the sender, lets the receiver keep
    what it has, and goes on to the caller. ``rate``: the most bytes a second at that moment, 0 for any number.
    ``stopped``: whether the pool that receives has stopped: its receiver then sits in the kernel and is not waited
    for. ``may_end``: whether the receiver is ssh, which is ended where the other side hangs: it would hold the locks
    of the job for ever. ``foreign``: whether another computer sends, of which only a single snapshot is received.
    Raises Failed with what ZFS said.
    """
    stream = open_stream(sender, receiver)
    stream.stopped = stopped
    patience = SECONDS_TO_FINISH
    try:
        try:
            if foreign:
                stream.relay_header(tell)
            stream.relay(tell, RateLimit(rate))
        except BaseException:
            command.end_process(stream.sender)
            if may_end:
                patience = SECONDS_TO_LET_GO
            raise
        finally:
            os.close(stream.source)
            os.close(stream.sink)
            received = stream.finish(stream.receiver, patience)
        if received is None:
            raise unfinished(receiver[0], pool_stopped=stopped(), elsewhere=may_end)
        sent = stream.finish(stream.sender, SECONDS_BETWEEN_LOOKS * 10)
        if received:
            complaint = stream.text(stream.sender)
            raise NotReceived(received, stream.text(stream.receiver) or complaint, sent, complaint)
        if sent:
            raise Failed(Message("The copy was not sent to its end"), stream.text(stream.sender))
        return stream.moved
    finally:
        for process in (stream.sender, stream.receiver):
            if process.poll() is None and (may_end or process is stream.sender):
                command.kill_process(process)
            elif process.stderr:
                process.stderr.close()


def unfinished(receiver: str, *, pool_stopped: bool, elsewhere: bool) -> Failed:
    """Why a copy does not finish; ``elsewhere``: its disks are another computer's."""
    if pool_stopped:
        return Failed(Message("The pool that receives has stopped"), POOL_STOPPED)
    advice = (
        Message("ZFS on the other computer waits for the disks of the copy. Look at them, and at its pool.")
        if elsewhere
        else Message(
            "{receiver} waits for the disks of the copy. Look at them; if the pool has stopped, restart the box.",
            receiver=receiver,
        )
    )
    return Failed(Message("The copy does not finish"), advice)


def open_stream(sender: Sequence[str], receiver: Sequence[str]) -> Stream:
    """Start both. The pipes are widened before any byte flows; later the kernel can deadlock (openzfs/zfs#13232)."""
    from_sender, to_relay = os.pipe()
    from_relay, to_receiver = os.pipe()
    try:
        for handle in (from_sender, from_relay):
            try:
                fcntl.fcntl(handle, fcntl.F_SETPIPE_SZ, PIPE)
            except OSError:  # above the limit of this system: the pipe stays as it is
                break
        receiving = command.start_process(receiver, stdin=from_relay, stdout=command.NOWHERE)
        try:
            sending = command.start_process(sender, stdout=to_relay)
        except BaseException:
            command.kill_process(receiving)
            raise
    except BaseException:
        os.close(from_sender)
        os.close(to_receiver)
        raise
    finally:
        os.close(to_relay)
        os.close(from_relay)
    return Stream(sending, receiving, from_sender, to_receiver, size=fcntl.fcntl(from_sender, fcntl.F_GETPIPE_SZ))
