"""Files rendered from hostile names, read back by the daemons' own tools: what comes out is what was meant."""

from __future__ import annotations

import io
import json
import tarfile

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from appliance.facts.box import Facts
from appliance.shares import nfs, smb
from appliance.shares.drift import parse
from tests.unit.shares.test_hostile_names import BOXES

HOW_MANY = 60
FOLDER = "/tmp/fuzz"
READ_BACK = f"""
import json, pathlib, subprocess
found = {{}}
for path in sorted(pathlib.Path("{FOLDER}").glob("*.conf")):
    done = subprocess.run(["testparm", "-s", "--suppress-prompt", str(path)], capture_output=True, text=True, errors="replace")
    found[path.stem] = [done.returncode, done.stdout, done.stderr]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def boxes() -> list[Facts]:
    """The same boxes each time, each asking for at least one share."""
    found: list[Facts] = []

    @settings(
        max_examples=HOW_MANY * 30,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(facts=BOXES)
    def collect(facts: Facts) -> None:
        if len(found) < HOW_MANY and (nfs.render_exports(facts) or any(True for _one in smb.samba_shares(facts))):
            found.append(facts)

    collect()
    assert len(found) >= HOW_MANY // 2
    return found


def test_samba_reads_every_file_as_it_was_meant(appliance, boxes):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for number, facts in enumerate(boxes):
            body = smb.render_config(facts).encode()
            entry = tarfile.TarInfo(f"{number}.conf")
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    appliance.put("/tmp/fuzz.tar", packed.getvalue())
    appliance.shell(f"mkdir -p {FOLDER} && tar -xf /tmp/fuzz.tar -C {FOLDER}")
    answers = json.loads(appliance.run("python3", "-c", READ_BACK, timeout=900))
    assert len(answers) == len(boxes)
    for number, facts in enumerate(boxes):
        status, said, complaints = answers[str(number)]
        assert status == 0, complaints
        assert "Unknown parameter" not in complaints
        assert "Ignoring" not in complaints
        found = parse.sections_of_samba(said)
        meant = {part.name: (dataset.mountpoint, part) for dataset, part in smb.samba_shares(facts)}
        assert set(found) - {"global"} == set(meant)
        for name, (path, part) in meant.items():
            assert found[name]["path"] == " ".join(path.split())
            assert (found[name].get("guest ok") == "yes") == (part.guest != "no")
            for line, people in (("write list", part.write), ("read list", part.read)):
                assert found[name].get(line, "").split() == [who for who in people if facts.lets_in(who)]
            assert not {"root preexec", "postexec", "include"} & set(found[name])


def test_the_nfs_server_reads_every_export_as_it_was_meant(appliance, boxes):
    """All folders at once, without the option that needs a file system of their own beneath each."""
    lines: dict[str, str] = {}
    for facts in boxes:
        for line in nfs.render_exports(facts).splitlines():
            export = nfs.parse_exports(line)[0]
            lines.setdefault(export.path, line.replace(",mountpoint", ""))
    # Names of computers that nobody knows would only be left out.
    meant = {
        (one.path, one.host) for line in lines.values() for one in nfs.parse_exports(line) if not one.host[-1].isalpha()
    }
    assert meant
    folders = "\0".join(path for path in lines if path != "/")
    appliance.run("xargs", "-0", "mkdir", "-p", "--", given=folders)
    appliance.put("/etc/exports.d/fuzz.exports", "".join(f"{line}\n" for line in lines.values()))
    try:
        appliance.run("systemctl", "start", "nfs-server", timeout=180)
        said = appliance.shell("exportfs -r 2>&1 >/dev/null; exportfs -s", timeout=180)
        served = {(one.path, one.host) for one in nfs.parse_listed(said)}
        assert {pair for pair in meant if pair[0] != "/"} <= served
        assert {path for path, _host in served} <= set(lines)
    finally:
        appliance.shell("rm -f /etc/exports.d/fuzz.exports; exportfs -r; systemctl stop nfs-server", timeout=180)
