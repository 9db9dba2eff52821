"""Send one message to another Larder and print what it answers. A process of its own, which runs as larder-ssh.

    python -I -m appliance.backups.pairing.post HOST PORT PATH < message

The first line that it prints is the status; the rest, cut to ``LONGEST``, is the answer.
The certificate is self-made and not looked at: both sides prove the code in what they say (``codes.py``).
"""

from __future__ import annotations

import http.client
import socket
import ssl
import sys

LONGEST = 4096  # bytes
SECONDS = 30


def post(host: str, port: int, path: str, message: bytes) -> tuple[int, bytes]:
    """The status and the answer. Raises OSError, HTTPException."""
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(host, port, timeout=SECONDS, context=trust)
    try:
        connection.request("POST", path, message, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read(LONGEST)
    finally:
        connection.close()


def main(words: list[str]) -> int:
    try:
        status, answer = post(words[0], int(words[1]), words[2], sys.stdin.buffer.read(LONGEST))
    except socket.gaierror:
        sys.stderr.write("unknown name\n")
    except TimeoutError:
        sys.stderr.write("timed out\n")
    except (OSError, http.client.HTTPException) as error:
        sys.stderr.write(f"{str(error)[:200] or type(error).__name__}\n")
    else:
        sys.stdout.buffer.write(b"%d\n" % status + answer)
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
