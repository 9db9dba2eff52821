"""Pair this box with another Larder, which shows a code: from then on backups can go there as to any other computer."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator

import msgspec

from appliance import command
from appliance.backups.pairing import codes
from appliance.backups.pairing.codes import Acceptance
from appliance.backups.remote import connection, settings
from appliance.backups.remote.set_up import RemoteOperation
from appliance.backups.remote.try_remote import try_remote
from appliance.errors import Failed, LarderError, Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.remote import Remote, fingerprint_of
from appliance.formatting import size_text
from appliance.message import Message, join_messages
from appliance.operation import Plan, Step, Work, always
from appliance.system.host_name import read_host_name

POSTER = "appliance.backups.pairing.post"  # not imported here: pages read this module, and need no HTTP client
PATH = "/backups/pair/"
SECONDS = 90
AGAIN = Message("Nothing was set up here.")


class PairBox(RemoteOperation, tag="pair-box"):
    """Make a key for another Larder, and exchange it for that box's host key by the code that it shows.

    It decides where everybody's files may go, so it needs the password beside the code.
    """

    needs_proof = always

    host: str
    port: int = 443

    def __post_init__(self) -> None:
        super().__post_init__()
        settings.check_host(self.host)
        if not 1 <= self.port <= 65535:
            raise Refused(Reason("port-out-of-range", "Enter a port from 1 to 65535.", field="port"))

    @property
    def title(self) -> str:
        return Message("Pair this box with {host}", host=self.host)

    def wants_secret(self) -> bool:
        return True

    def check(self, facts: Facts) -> Iterator[Reason]:
        if facts.remote(self.remote):
            yield Reason("remote-known", "That computer was added a moment ago.")
        yield from settings.check_room(facts.remotes)

    def plan(self, facts: Facts) -> Plan:
        place = f"https://{self.host}{'' if self.port == 443 else f':{self.port}'}{PATH}"
        return Plan(
            summary=Message(
                "This box and {host} prove to each other that both have the code, and exchange their keys. "
                "Afterwards backups can go to {host}. Nothing is sent yet.",
                host=self.host,
            ),
            steps=(
                Step(
                    "pair",
                    Message("Exchange the keys"),
                    f"{shlex.join(['ssh-keygen', '-t', 'ed25519', '-f', str(settings.key_file(self.remote))])}\nPOST "
                    f"{place}",
                    self.pair,
                ),
                Step(
                    "test",
                    Message("Ask {host} whether it can take copies", host=self.host),
                    f"ssh {self.host} hello",
                    self.test,
                ),
            ),
            identity={"operation": msgspec.to_builtins(self)},
            undo=Message("It can be removed again, here and there."),
        )

    def pair(self, work: Work) -> None:
        key = codes.key_of(work.secret())
        try:
            public = settings.make_key(self.remote)
            offer = codes.make_offer(key, public, own_name())
            found = read_acceptance(self.ask(msgspec.json.encode(offer)), self.host)
            codes.check_acceptance(key, offer, found, self.host)
            remote = remote_of(self.remote, self.host, public, found)
            settings.pin_host_key(remote, settings.check_host_key(found.host_key))
        except LarderError:
            settings.remove_remote(self.remote)
            raise
        work.note(
            Message(
                "{host} has proved the code. Its host key is {fingerprint_of}.",
                host=self.host,
                fingerprint_of=fingerprint_of(found.host_key),
            )
        )

    def ask(self, message: bytes) -> str:
        """What the other Larder answers to the offer. Raises Failed, Refused."""
        settings.ssh_group()
        argv = connection.as_ssh_user([sys.executable, "-I", "-m", POSTER, self.host, str(self.port), PATH])
        result = command.run(argv, given=message, timeout=SECONDS, accept=range(256))
        if result.status:
            raise Failed(
                Message("{host}, port {port} does not answer", host=self.host, port=self.port),
                join_messages([AGAIN, explain(result.stderr)]),
            )
        status, _line, answer = result.stdout.partition("\n")
        if status == "200":
            return answer
        raise explain_status(status, self.host)

    def test(self, work: Work) -> None:
        remote, hello = try_remote(self.remote)
        work.note(
            Message(
                "{host} has ZFS {version_text}, and {available} are free there.",
                host=remote.host,
                version_text=hello.version_text,
                available=size_text(hello.available),
            )
        )
        if hello.may_destroy:
            work.note(Message("{user} may destroy copies there. That is more than backups need.", user=hello.user))

    def probe(self, step: str, facts: Facts) -> bool:
        found = facts.remote(self.remote)
        return found is not None and (step == "pair" or found.is_ready)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if facts.remote(self.remote) is None:
            return Message(
                "Nothing was set up here. If the other Larder shows this box as paired, remove it there. "
                "Then begin again there."
            )
        return Message("It is paired, but was not ready. Choose Test on its page.")


def own_name() -> str:
    """This box's host name as it is told to the other."""
    plain = re.sub(r"[^A-Za-z0-9.-]", "-", read_host_name()).lstrip("-.")[:63]
    return plain if codes.NAME.fullmatch(plain) else "larder"


def explain(said: str) -> str:
    if "unknown name" in said:
        return Message("There is no computer with that name. Check the name, or enter its address.")
    if "refused" in said.lower():
        return Message("Check the address, and the port if it has one.")
    return Message("Is it switched on and connected to the network?")


def explain_status(status: str, host: str) -> LarderError:
    if status == "403":
        return Refused(
            Reason(
                "pairing-code-refused",
                "{host} does not accept the code. Show a new one there, and type that.",
                host=host,
            )
        )
    if status == "404":
        return Refused(
            Reason(
                "pairing-not-open-there",
                "{host} shows no code now: it was used, its time is over, or there were too many wrong "
                "tries. Show a new code there.",
                host=host,
            )
        )
    if status == "429":
        return Refused(
            Reason(
                "pairing-too-often",
                "There were too many tries at {host}. Wait five minutes, then show a new code there.",
                host=host,
            )
        )
    return Failed(
        Message("{host} could not be paired", host=host),
        Message("{again} It does not answer as a Larder does (status {status}).", again=AGAIN, status=status[:3]),
    )


def read_acceptance(text: str, host: str) -> Acceptance:
    """Raises Failed where it is none."""
    try:
        return msgspec.json.decode(text, type=Acceptance)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Failed(Message("{host} does not answer as a Larder does", host=host), AGAIN) from error


def remote_of(key: str, host: str, public: str, found: Acceptance) -> Remote:
    """The other Larder as a place for backups. Raises Failed where it names something that cannot be."""
    try:
        user, root = settings.check_user(found.user), settings.check_remote_name(found.root)
    except Refused as refused:
        raise Failed(Message("{host} named a folder or user that is not valid", host=host), AGAIN) from refused
    if not 1 <= found.port <= 65535:
        raise Failed(Message("{host} named a port that is not valid", host=host), AGAIN)
    return Remote(key, host, found.port, user, root, public_key=public, paired=True)
