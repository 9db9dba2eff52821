"""Why an import did not work, from rsync's and ssh's words."""

from __future__ import annotations

import pytest

from appliance.command import Result
from appliance.facts.file_import import FileImport
from appliance.imports.try_import import explain, shown

TASK = FileImport("0badcafe", "nas.lan", 22, "admin", "/volume1/photos", "tank/photos", 5)


@pytest.mark.parametrize(
    ("status", "said", "means"),
    [
        (127, "bash: line 1: rsync: command not found", "nas.lan has no rsync"),
        (127, "sh: 1: rsync: not found", "nas.lan has no rsync"),
        (
            23,
            'rsync: [sender] change_dir "/volume1/photos" failed: No such file or directory (2)',
            "has no folder /volume1/photos that admin may read",
        ),
        (11, 'rsync: [receiver] write failed on "/folder/a": No space left on device (28)', "tank/photos is full"),
        (11, 'rsync: [receiver] write failed on "/folder/a": Disk quota exceeded (122)', "tank/photos is full"),
        (1, "rsync: --debug=FILTER1: unknown option", "too old"),
        (2, "protocol version mismatch -- is your shell clean?", "prints text before rsync starts"),
        (255, "admin@nas.lan: Permission denied (publickey).", "does not let this box in as admin"),
        (255, "Host key verification failed.", "another host key"),
        (255, "ssh: connect to host nas.lan port 22: Connection refused", "Nothing answers at nas.lan, port 22"),
        (12, "rsync: connection unexpectedly closed (0 bytes received so far) [Receiver]", "broke off"),
        (5, "what nobody knows", "rsync ended with status 5: what nobody knows"),
    ],
)
def test_each_failure_has_a_sentence(status, said, means):
    assert means in str(explain(TASK, Result(("rsync",), status, "", said, 1.0)))


def test_command_is_shown_without_the_options_of_ssh():
    assert shown(["rsync", "--rsh=setpriv ssh -i /var/lib/larder-ssh/x.key", "--links"]) == "rsync --rsh=ssh --links"
