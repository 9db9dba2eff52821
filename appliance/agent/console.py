"""What root can do at the console (``larder-jobs``): see the jobs that wait, cancel them, forget the agent's password."""

from __future__ import annotations

import sys

from appliance.agent import delayed_jobs, proof
from appliance.errors import LarderError, explain_error

USAGE = """larder-jobs                    list the jobs that wait because nobody gave the administrator's password
larder-jobs cancel [NUMBER]    cancel that job, or all that wait
larder-jobs forget-password    the password of the next sign-in is the one that starts such jobs at once
"""


def run(words: list[str]) -> str:
    """Do what the words say; what is to be told. Raises LarderError, ValueError for words that mean nothing."""
    match words:
        case []:
            lines = [f"{one.at}  {delayed_jobs.plain(one.title)}  {one.job}\n" for one in delayed_jobs.read_waiting()]
            return "".join(lines) or "No job is waiting.\n"
        case ["cancel", *jobs]:
            lines = [
                f"{job}: {'cancelled' if delayed_jobs.cancel(job) else 'is not waiting'}\n"
                for job in delayed_jobs.job_ids(jobs)
            ]
            return "".join(lines) or "No job is waiting.\n"
        case ["forget-password"]:
            proof.remove_hash()
            return "Forgotten. Sign out of Larder and in again: that password is then the one.\n"
    raise ValueError(USAGE)


def main() -> None:
    if not delayed_jobs.is_root():
        sys.exit("larder-jobs: run this as root: sudo larder-jobs")
    try:
        sys.stdout.write(run(sys.argv[1:]))
    except ValueError as error:
        sys.exit(str(error))
    except LarderError as error:
        sys.exit(f"larder-jobs: {explain_error(error)}")


if __name__ == "__main__":
    main()
