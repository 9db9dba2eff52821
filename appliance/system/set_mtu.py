"""Try another MTU on a network port. It stays once somebody has confirmed that everything still works."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from appliance import command
from appliance.errors import Failed, LarderError, Reason, Refused
from appliance.facts.box import Facts
from appliance.message import Message, join_messages
from appliance.operation import Operation, Plan, Step, Work, never
from appliance.system import full_frames, mtu, service_start, trial_record
from appliance.system.atomic_file import sync_folder, write_atomically

NETWORK_LOCK = "network"
# A port can lose its link when its MTU changes, with it its address until DHCP has answered; a switch can take 30
# seconds to forward again (spanning tree).
SECONDS_TO_ANSWER = 35.0


def unit_of(port: str) -> str:
    return f"larder-mtu-back-{port}"


def set_argv(port: str, value: int) -> tuple[str, ...]:
    return ("ip", "link", "set", "dev", port, "mtu", str(value))


# What the timer runs: the confirmed file as it was, then the value. Keeping is written before the timer is stopped, so
# a kill in between is undone whole. It has no ${…}, which systemd would expand.
PUT_BACK = (
    'if [ -f "$3" ]; then cmp -s "$3" "$4" || { cp "$3" "$5" && mv -f "$5" "$4"; }; else rm -f "$4"; fi; '
    'exec ip link set dev "$1" mtu "$2"'
)


def timer_argv(port: str, former: int) -> tuple[str, ...]:
    """The timer belongs to systemd: it acts also if everything of Larder has ended."""
    kept = mtu.confirmed_file(port)
    beside = kept.with_name(f".{port}.new")  # no name of a port
    return (
        "systemd-run",
        "--quiet",
        "--collect",
        f"--unit={unit_of(port)}",
        f"--on-active={mtu.SECONDS}s",
        "--timer-property=AccuracySec=1s",
        "sh",
        "-c",
        PUT_BACK,
        "sh",
        port,
        str(former),
        str(mtu.former_file(port)),
        str(kept),
        str(beside),
    )


def stop_argv(port: str) -> tuple[str, ...]:
    """Stop the timer, and what it may have begun already, before that is half done."""
    return ("systemctl", "stop", f"{unit_of(port)}.timer", f"{unit_of(port)}.service")


NOT_LOADED = 5  # exit status of systemctl where there is no such unit, so it has acted or was stopped before


class MtuOperation(Operation):
    """``port``: its name; ``mtu``: the value that is tried or kept; ``former``: the value that comes back."""

    needs_proof = never  # no data is touched, and what is tried goes back by itself

    port: str
    mtu: int
    former: int

    def __post_init__(self) -> None:
        mtu.check_port(self.port)
        mtu.check_value(self.mtu)
        mtu.check_value(self.former)

    @property
    def subject(self) -> str:
        return self.port

    def locks(self) -> tuple[str, ...]:
        return (NETWORK_LOCK,)


class TryMtu(MtuOperation, tag="try-mtu"):
    """Set an MTU until the timer puts the former one back. At once it goes back where a larger one does not
    reach a computer that is connected, or may not, unless that is one of ``accepted``: addresses that the
    administrator has seen named."""

    needs_proof = never

    accepted: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        full_frames.check_addresses(self.accepted)

    @property
    def title(self) -> str:
        return Message("Try an MTU of {mtu} on {port}", mtu=self.mtu, port=self.port)

    def check(self, facts: Facts) -> Iterator[Reason]:
        if self.mtu == self.former:
            yield Reason("mtu-same", "The port has this MTU already.", field="mtu")

    def plan(self, facts: Facts) -> Plan:
        seconds, larger = mtu.SECONDS, self.mtu > self.former
        first = Message(
            "Each computer that is connected is asked first whether frames of {mtu} bytes arrive there. If "
            "they do not, the page names those computers, and {former} is back after some seconds.",
            mtu=self.mtu,
            former=self.former,
        )
        then = Message(
            "{port} gets an MTU of {mtu} for {seconds} seconds. If you confirm on the page of the system "
            "that everything still works, it stays. Otherwise {former} comes back by itself, also if these "
            "pages can no longer be reached.",
            port=self.port,
            mtu=self.mtu,
            seconds=seconds,
            former=self.former,
        )
        return Plan(
            summary=join_messages([first, then]) if larger else then,
            steps=(
                Step(
                    "arm",
                    Message("Set a timer that puts {former} back", former=self.former),
                    shlex.join(timer_argv(self.port, self.former)),
                    self.arm,
                ),
                Step(
                    "change", Message("Set {mtu}", mtu=self.mtu), " ".join(set_argv(self.port, self.mtu)), self.change
                ),
                Step(
                    "ask",
                    Message("See whether full frames reach the computers that are connected"),
                    Message("an ICMP echo request of that size to each, not to be fragmented"),
                    self.ask,
                ),
            ),
            identity={
                "kind": "try-mtu",
                "port": self.port,
                "mtu": self.mtu,
                "former": self.former,
                "accepted": [*self.accepted],
            },
            warnings=self.warnings(),
            undo=Message(
                "Do nothing: {former} comes back after {seconds} seconds.", former=self.former, seconds=seconds
            ),
        )

    def warnings(self) -> tuple[str, ...]:
        found = []
        if self.mtu > mtu.USUAL:
            found.append(
                Message(
                    "A larger MTU than {usual} helps only if every computer, switch and access point in this "
                    "network is set to it. Those that are not may lose their connection.",
                    usual=mtu.USUAL,
                )
            )
        if self.accepted:
            found.append(
                Message(
                    "These computers cannot follow, or do not say whether they can. They may lose their "
                    "connection until {former} is back: {names}.",
                    former=self.former,
                    names=", ".join(self.accepted),
                )
            )
        return tuple(found)

    def arm(self, work: Work) -> None:
        """Refuse what is not known; see who is connected; then the timer, before anything changes."""
        service_start.refuse_container()
        if refusal := mtu.describe_manager(self.port):
            raise Refused(
                Reason("mtu-not-managed", "The MTU of {port} stays as it is. {why}", port=self.port, why=refusal)
            )
        if mtu.read_trial(self.port):
            raise Refused(
                Reason("mtu-trial-runs", "Another MTU is being tried. Wait until it has been kept or put back.")
            )
        if (tried := trial_record.read_record()) and tried.until > mtu.now():
            raise Refused(
                Reason("setting-trial-runs", "A setting is being tried. Wait until that measurement has ended.")
            )
        if mtu.read_mtu(self.port) != self.former:
            raise Refused(
                Reason("mtu-changed-since", "The port has got another MTU since you opened the page. Open it again.")
            )
        clients = full_frames.list_clients(self.port)
        work.progress(0, Message("Asking the computers that are connected"))
        silent = full_frames.ask_clients(clients, full_frames.SMALL).silent
        self.note_former()
        command.run(timer_argv(self.port, self.former), timeout=60)
        until = mtu.now() + mtu.SECONDS
        mtu.note_trial(
            mtu.Trial(port=self.port, mtu=self.mtu, former=self.former, until=until, clients=clients, silent=silent)
        )

    def note_former(self) -> None:
        """Have a copy of what was confirmed where the timer finds it."""
        confirmed = mtu.read_confirmed(self.port)
        if confirmed is None:
            mtu.former_file(self.port).unlink(missing_ok=True)
        else:
            write_atomically(mtu.former_file(self.port), confirmed, mode=0o644)

    def change(self, work: Work) -> None:
        """Set the value; where the port does not take it, the timer is not needed."""
        try:
            command.run(set_argv(self.port, self.mtu), timeout=30)
            if mtu.read_mtu(self.port) != self.mtu:
                raise Failed(Message("{port} did not take an MTU of {mtu}", port=self.port, mtu=self.mtu))
        except Failed:
            with suppress(Failed):
                self.put_back()
            raise

    def put_back(self) -> None:
        """Before the timer does it. Raises Failed: then the timer stands as before."""
        command.run(set_argv(self.port, self.former), timeout=30)
        command.run(("systemctl", "stop", f"{unit_of(self.port)}.timer"), timeout=30, accept=range(256))
        mtu.trial_file(self.port).unlink(missing_ok=True)

    def ask(self, work: Work) -> None:
        """Name the computers that no full frame reaches, and end the trial where nobody has accepted that."""
        trial = mtu.read_trial(self.port)
        if trial is None:
            return  # it is back already
        try:
            asked = [address for address in trial.clients if address not in trial.silent]
            answers = full_frames.ask_clients(asked, self.mtu, patience=SECONDS_TO_ANSWER)
        except OSError as error:
            self.put_back()
            raise Failed(Message("The computers that are connected could not be asked"), str(error)) from error
        deaf = (*answers.deaf, *answers.silent)  # the latter answered before
        for address in deaf:
            work.note(Message("{address} did not answer a full frame", address=address))
        if self.mtu > self.former and not {*deaf, *trial.silent} <= {*self.accepted}:
            mtu.note_unreached(self.port, self.mtu, deaf, trial.silent)
            self.put_back()
            raise Refused(*self.explain_unreached(deaf, trial.silent))
        if not deaf and not trial.silent:
            mtu.unreached_file(self.port).unlink(missing_ok=True)
        mtu.note_trial(msgspec.structs.replace(trial, tested=bool(trial.clients), deaf=deaf))

    def explain_unreached(self, deaf: tuple[str, ...], silent: tuple[str, ...]) -> Iterator[Reason]:
        if deaf:
            yield Reason(
                "mtu-not-followed", "Frames of {mtu} bytes do not reach {names}.", mtu=self.mtu, names=", ".join(deaf)
            )
        if silent:
            yield Reason(
                "mtu-not-answered",
                "It is not known whether frames of {mtu} bytes reach {names}: no ping is answered there.",
                mtu=self.mtu,
                names=", ".join(silent),
            )
        yield Reason(
            "mtu-back",
            "So {port} has an MTU of {former} again. Set {mtu} on those computers and on every switch "
            "between, or try it all the same: the page where you change the MTU now offers that.",
            port=self.port,
            former=self.former,
            mtu=self.mtu,
        )

    def probe(self, step: str, facts: Facts) -> bool:
        trial = mtu.read_trial(self.port)
        return trial is not None and (trial.mtu, trial.former) == (self.mtu, self.former) and step != "ask"

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message(
            "{former} comes back by itself, at the latest {seconds} seconds after the change. Then try again.",
            former=self.former,
            seconds=mtu.SECONDS,
        )


class KeepMtu(MtuOperation, tag="keep-mtu"):
    """Keep the MTU that is being tried, also after a restart."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Keep the MTU of {mtu} on {port}", mtu=self.mtu, port=self.port)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from ()  # whether it is still being tried is asked where it runs: it changes by itself

    def plan(self, facts: Facts) -> Plan:
        kept = mtu.confirmed_file(self.port)
        write = f"rm -f {kept}" if self.mtu == mtu.USUAL else f"write {kept}"
        return Plan(
            summary=Message(
                "{port} keeps an MTU of {mtu}, also after a restart of the box.", port=self.port, mtu=self.mtu
            ),
            steps=(
                Step(
                    "keep",
                    Message("Store {mtu} and stop the timer", mtu=self.mtu),
                    f"{write}\n{shlex.join(stop_argv(self.port))}",
                    self.keep,
                    (str(kept),),
                ),
            ),
            identity={"kind": "keep-mtu", "port": self.port, "mtu": self.mtu, "former": self.former},
            undo=Message("Set {former} on the page of the system.", former=self.former),
        )

    def keep(self, work: Work) -> None:
        """Store the value, stop the timer, and look whether it has acted.

        Until it is stopped, the timer puts both back, the file and the value, also if this ends in between.
        """
        over = Reason("mtu-trial-over", "The former MTU is back already. Try the other one again.")
        if mtu.read_trial(self.port) is None:
            raise Refused(over)
        before = mtu.read_confirmed(self.port)
        wanted = None if self.mtu == mtu.USUAL else f"{self.mtu}\n".encode()
        try:
            self.store(wanted)
            command.run(stop_argv(self.port), timeout=30, accept=(0, NOT_LOADED))
            if mtu.read_mtu(self.port) != self.mtu:
                raise Refused(over)
        except (LarderError, OSError):
            self.store(before)
            raise
        self.store(wanted)  # where the timer had begun with the file
        mtu.trial_file(self.port).unlink(missing_ok=True)
        mtu.former_file(self.port).unlink(missing_ok=True)
        mtu.unreached_file(self.port).unlink(missing_ok=True)

    def store(self, content: bytes | None) -> None:
        """Have that in the file, or none. Raises OSError."""
        kept = mtu.confirmed_file(self.port)
        if mtu.read_confirmed(self.port) == content:
            return
        if content is None:
            kept.unlink()
            sync_folder(kept.parent)
        else:
            kept.parent.mkdir(mode=0o755, exist_ok=True)
            write_atomically(kept, content, mode=0o644)

    def probe(self, step: str, facts: Facts) -> bool:
        kept = mtu.confirmed_file(self.port)
        stored = kept.read_text().strip() if kept.exists() else str(mtu.USUAL)
        return mtu.read_mtu(self.port) == self.mtu and stored == str(self.mtu) and not mtu.read_trial(self.port)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message(
            "Look at the page of the system: if the port has an MTU of {former} again, try {mtu} once more.",
            former=self.former,
            mtu=self.mtu,
        )
