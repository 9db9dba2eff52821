"""Requests about jobs, and about the administrator's password, which proves them."""

from __future__ import annotations

from appliance import names
from appliance.agent import journal, proof, run_operation
from appliance.agent.registry import Registered
from appliance.request import Exchange, Request


class JobRequest(Request):
    """Base of requests about one job."""

    job: str

    def __post_init__(self) -> None:
        names.job_id(self.job)


class RunJob(JobRequest, tag="run"):
    """Run an operation under a job's id, once; asked again, follow it or send its outcome.

    ``plan_seen`` says that a person has confirmed the plan of this digest, so that another one is
    refused. Without it the outcome is ``outdated`` instead, nothing is done or remembered, and the same
    id may come with the plan as it is now.
    """

    digest: str
    operation: Registered
    plan_seen: bool = True

    def answer(self, exchange: Exchange) -> None:
        run_operation.execute(
            self.job, self.operation, self.digest, exchange.read_facts, exchange.send, plan_seen=self.plan_seen
        )


class Follow(JobRequest, tag="follow"):
    """Send the progress and the outcome of a job that the agent knows."""

    def answer(self, exchange: Exchange) -> None:
        if journal.read_journal(self.job) is None:
            exchange.send({"outcome": journal.outcome(None)})
        else:
            run_operation.follow(self.job, exchange.read_facts, exchange.send)


class Stop(JobRequest, tag="stop"):
    """Ask a job to stop before its next step."""

    def answer(self, exchange: Exchange) -> None:
        exchange.send({"outcome": {"stopping": run_operation.ask_to_stop(self.job)}})


class Prove(JobRequest, tag="prove"):
    """The administrator's password goes with this very job;
    ``known`` in the answer: there is one to compare it with."""

    digest: str
    operation: Registered
    password: str

    def read(self) -> object:
        if proof.is_set():
            proof.grant(self.job, self.operation, self.digest, self.password)
        return {"known": proof.is_set()}


class KeepPassword(Request, tag="keep-password"):
    """Keep the hash of the administrator's password: the first as it comes, another only with the old one."""

    password: str
    old: str = ""

    def read(self) -> object:
        proof.store_hash(self.password, self.old)
        return {"kept": True}
