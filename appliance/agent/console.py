"""What root can do at the console (``larder-jobs``): see the jobs that wait, cancel them,
forget the agent's password."""

from __future__ import annotations

import sys
from collections.abc import Callable

from appliance.agent import delayed_jobs, proof
from appliance.errors import LarderError, explain_error
from appliance.message import Message, words_of
from appliance.system import language

USAGE = Message("""larder-jobs                    list the jobs that wait because nobody gave the administrator's password
larder-jobs cancel [NUMBER]    cancel that job, or all that wait
larder-jobs forget-password    the password of the next sign-in is the one that starts such jobs at once
""")


NONE_WAITS = Message("No job is waiting.")


def run(words: list[str], look_up: Callable[[str], str] = str) -> str:
    """Do what the words say; what is to be told, as a catalogue has it.

    Raises LarderError, ValueError for words that mean nothing.
    """
    match words:
        case []:
            lines = [
                f"{one.at}  {delayed_jobs.plain(words_of(one.title, look_up))}  {one.job}"
                for one in delayed_jobs.read_waiting()
            ]
        case ["cancel", *jobs]:
            lines = [words_of(cancel(job), look_up) for job in delayed_jobs.job_ids(jobs)]
        case ["forget-password"]:
            proof.remove_hash()
            lines = [
                words_of(
                    Message(
                        "Forgotten. Sign out of Larder and in again: the password that you use then counts from now on."
                    ),
                    look_up,
                )
            ]
        case _:
            raise ValueError(words_of(USAGE, look_up))
    return "".join(f"{line}\n" for line in lines or [words_of(NONE_WAITS, look_up)])


def cancel(job: str) -> str:
    """Never raises: the jobs after it have to be cancelled as well."""
    try:
        if delayed_jobs.cancel(job):
            return Message("{job}: cancelled", job=job)
    except (OSError, LarderError, ValueError) as error:
        return Message("{job}: could not be cancelled ({problem})", job=job, problem=str(error))
    return Message("{job}: is not waiting", job=job)


def main() -> None:
    look_up = language.box_catalogue()
    if not delayed_jobs.is_root():
        sys.exit(
            f"larder-jobs: {words_of(Message('run this as root: {command}', command='sudo larder-jobs'), look_up)}"
        )
    try:
        sys.stdout.write(run(sys.argv[1:], look_up))
    except ValueError as error:
        sys.exit(str(error))
    except LarderError as error:
        sys.exit(f"larder-jobs: {words_of(explain_error(error), look_up)}")


if __name__ == "__main__":
    main()
