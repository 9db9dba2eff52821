"""Pages that create, start, pause, resume and stop a sweep."""

from __future__ import annotations

import logging
import uuid

import msgspec
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST
from msgspec.structs import replace

from appliance import names
from appliance.benchmarks import estimate
from appliance.benchmarks.matrix import Sweep, axes_of
from appliance.benchmarks.presets import BY_NAME, smallest_size
from appliance.benchmarks.run_case import RunBenchmarkCase
from appliance.benchmarks.workloads import KINDS
from appliance.disks.erase import confirm_text
from appliance.errors import LarderError, Reason, Refused
from appliance.facts.box import Caching, Disk, Facts
from appliance.formatting import disk_label
from appliance.operation import Plan, checked_plan
from web import live
from web.benchmarks.client_models import ClientRunRow
from web.benchmarks.create import store_sweep
from web.benchmarks.forms import NO_TOKEN, SweepForm, check_sweep
from web.benchmarks.models import CaseRow, SweepRow
from web.benchmarks.questions import lacking_for_client, list_questions
from web.inventory import store
from web.inventory.box import read_box
from web.inventory.fact_row import first_fact
from web.inventory.models import CachingRow
from web.jobs import confirm, queue
from web.jobs.models import Job
from web.jobs.refusals import refusals_lead_to
from web.translation import lazy_text

log = logging.getLogger(__name__)
PAGE, MOST_CLIENT_RUNS = 30, 20
State = SweepRow.State
# What a user can do with a sweep: from which states, and to which.
ACTS: dict[str, tuple[tuple[str, ...], str]] = {
    "pause": ((State.RUNNING,), State.PAUSING),
    "pause-now": ((State.RUNNING, State.PAUSING), State.PAUSING),
    "resume": ((State.PAUSED, State.PAUSING), State.RUNNING),
    "cancel": ((State.RUNNING, State.PAUSING, State.PAUSED), State.CANCELLING),
}

SAID = {
    "pause": lazy_text("It pauses when the case that is measured now has ended."),
    "pause-now": lazy_text("It pauses as soon as this case is cleaned up. The case is measured again when you resume."),
    "resume": lazy_text("It goes on with the next case."),
    "cancel": lazy_text("It stops, and what it made is cleared away. What was measured stays."),
}


@require_GET
def list_sweeps(request: HttpRequest) -> HttpResponse:
    """The presets, and the sweeps so far."""

    def build() -> dict[str, object]:
        counted = (
            SweepRow.objects.defer("spec")
            .order_by("-created")
            .annotate(
                total=Count("cases"),
                done=Count("cases", filter=Q(cases__state__in=(CaseRow.State.DONE, CaseRow.State.FAILED))),
            )
        )
        page = Paginator(counted, PAGE).get_page(request.GET.get("page"))
        client_runs = list(ClientRunRow.objects.defer("told")[:MOST_CLIENT_RUNS])
        return {"page": page, "rows": page.object_list, "client_runs": client_runs, **questions}

    # Called by the template where it shows them: never for the live part alone.
    questions = {"questions": list_questions, "lacking_for_client": lacking_for_client}
    return live.respond(request, "benchmarks/list.html", build)


def memory_limit() -> int:
    """Maximum of the ARC in bytes; 0 if not yet known."""
    caching: Caching | None = first_fact(CachingRow.objects.all()[:1])
    return caching.memory if caching else 0


@require_GET
def new_sweep(request: HttpRequest, name: str) -> HttpResponse:
    """The form of a preset, or the review once its values are valid."""
    preset = BY_NAME.get(name)
    if preset is None:
        raise Http404
    asked = "answered" in request.GET
    if not asked:
        queue.request_refresh()  # a disk that was put in just now can be chosen as soon as it is known
    facts = store.facts()
    form = SweepForm(
        request.GET if asked else None, preset=preset, bays=read_box().bays, facts=facts, memory=memory_limit()
    )
    if asked and "change" not in request.GET and form.is_valid():
        query = request.GET.copy()
        query["change"] = "1"
        back = f"{request.path}?{query.urlencode()}"
        return review_sweep(request, form.sweep, facts, title=form.cleaned_data["title"], preset=name, back=back)
    wrong = asked and bool(form.errors)
    return render(request, "benchmarks/new.html", {"form": form, "preset": preset}, status=400 if wrong else 200)


class TypedDisk(msgspec.Struct, frozen=True):
    """A disk whose name the user has to type."""

    field: str
    disk: Disk
    word: str
    error: str = ""

    @property
    def label(self) -> str:
        return disk_label(self.disk)

    def compared_with(self, text: str) -> TypedDisk:
        """This disk, with an error unless ``text`` is its name."""
        return (
            self if text == self.word else replace(self, error=gettext("Type {word} exactly.").format(word=self.word))
        )


def disks_to_type(sweep: Sweep, facts: Facts) -> list[TypedDisk]:
    """The disks that a sweep writes to; none if it only reads or stays in a folder."""
    if not sweep.destroys:
        return []
    disks = [disk for path in sweep.all_disks if (disk := facts.disk(path))]
    return [TypedDisk(f"typed-{at}", disk, confirm_text(disk)) for at, disk in enumerate(disks)]


def review_sweep(
    request: HttpRequest,
    sweep: Sweep,
    facts: Facts,
    *,
    title: str,
    preset: str,
    back: str,
    typed: list[TypedDisk] | None = None,
    pk: str = "",
    status: int = 200,
) -> HttpResponse:
    """The review: cases, duration, and disks."""
    cases = list(sweep.build_cases())
    columns = axes_of(cases)
    first: Plan = checked_plan(RunBenchmarkCase(token=NO_TOKEN, case=cases[0]), facts)
    context = {
        "sweep": sweep,
        "spec": msgspec.json.encode(sweep).decode(),
        "title": title,
        "preset": preset,
        "columns": columns,
        "cases": [([case.settings.get(name, "") for name in columns], KINDS[case.workload].title) for case in cases],
        "seconds": estimate.total_seconds(
            cases, smallest_size([disk for path in sweep.disks if (disk := facts.disk(path))])
        ),
        "first": first,
        "typed": disks_to_type(sweep, facts) if typed is None else typed,
        "disks": [disk for path in sweep.all_disks if (disk := facts.disk(path))],
        "pk": pk or str(uuid.uuid4()),
        "back": back,
    }
    return render(request, "benchmarks/review.html", context, status=status)


@require_GET
@refusals_lead_to("benchmarks")
def repeat_sweep(request: HttpRequest, pk: str) -> HttpResponse:
    """The review of the same sweep, to run it again."""
    row = get_object_or_404(SweepRow, pk=pk)
    facts, sweep = store.facts(), row.sweep
    Refused.unless_empty(dict.fromkeys(check_sweep(sweep, facts)))
    return review_sweep(request, sweep, facts, title=row.title, preset=row.preset, back=reverse("benchmark", args=[pk]))


def read_sweep(text: str) -> Sweep:
    """The sweep that a review page sends back. Raises Refused."""
    try:
        return msgspec.json.decode(text, type=Sweep)
    except (msgspec.MsgspecError, RecursionError) as error:
        reason = Reason(
            "benchmark-unreadable", "This benchmark cannot be read. Start again from the list of benchmarks."
        )
        raise Refused(reason) from error


@require_POST
@refusals_lead_to("benchmarks")
def start_sweep(request: HttpRequest) -> HttpResponse:
    """Start the sweep of a confirmed review, after checking it again."""
    facts, pk = store.facts(), names.job_id(request.POST.get("sweep", ""))
    if SweepRow.objects.filter(pk=pk).exists():
        return redirect("benchmark", pk=pk)
    sweep = read_sweep(request.POST.get("spec", ""))
    Refused.unless_empty(dict.fromkeys(check_sweep(sweep, facts)))
    title, preset = request.POST.get("title", "")[:200], request.POST.get("preset", "")[:30]
    typed = [disk.compared_with(request.POST.get(disk.field, "")) for disk in disks_to_type(sweep, facts)]
    if any(disk.error for disk in typed):
        back = request.POST.get("back", "")
        back = back if back.startswith(reverse("benchmarks")) else reverse("benchmarks")
        return review_sweep(
            request, sweep, facts, title=title, preset=preset, back=back, typed=typed, pk=pk, status=400
        )
    row = store_sweep(
        sweep, title=title or gettext("Measurement"), preset=preset, pk=pk, user=request.user.get_username()
    )
    queue.send("workers.tick")
    return redirect("benchmark", pk=row.pk)


@require_POST
def forget_sweep(request: HttpRequest, pk: str) -> HttpResponse:
    """Delete a finished sweep with its results. Harmless to repeat."""
    SweepRow.objects.filter(pk=pk).exclude(state__in=SweepRow.OPEN).delete()
    store.touch("sweeps")
    messages.success(request, gettext("The benchmark was deleted."))
    return redirect("benchmarks")


def stop_case(row: SweepRow) -> None:
    """Ask the agent to stop the running case. If it cannot be reached, the sweep pauses after this case."""
    running = row.cases.filter(state=CaseRow.State.RUNNING).values("job")
    for job in Job.objects.filter(pk__in=running):
        try:
            confirm.request_stop(job)
        except LarderError as error:
            log.warning("job %s could not be asked to stop: %s", job.pk, error)


@require_POST
def change_sweep(request: HttpRequest, pk: str, what: str) -> HttpResponse:
    """Pause a sweep after this case or now, resume it, or stop it. Harmless to repeat."""
    if what not in ACTS:
        raise Http404
    row = get_object_or_404(SweepRow, pk=pk)
    states, wanted = ACTS[what]
    changed = SweepRow.objects.filter(pk=row.pk, state__in=states).update(state=wanted)
    if what == "cancel":
        # A queued sweep has nothing to stop.
        changed += SweepRow.objects.filter(pk=row.pk, state=State.QUEUED).update(state=State.CANCELLED)
    if what == "pause-now" and changed:
        stop_case(row)
    if changed:
        messages.success(request, SAID[what])
    store.touch("sweeps")
    queue.send("workers.tick")
    return redirect("benchmark", pk=row.pk)
