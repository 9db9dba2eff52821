"""The list of chapters, and one chapter."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from web.guide.chapters import BY_SLUG, CHAPTERS


@require_GET
def list_chapters(request: HttpRequest) -> HttpResponse:
    return render(request, "guide/list.html", {"chapters": CHAPTERS})


@require_GET
def show_chapter(request: HttpRequest, slug: str) -> HttpResponse:
    """A chapter, with the ones before and after it."""
    if (chapter := BY_SLUG.get(slug)) is None:
        raise Http404
    at = CHAPTERS.index(chapter)
    before, after = CHAPTERS[at - 1] if at else None, next(iter(CHAPTERS[at + 1 :]), None)
    context = {"chapter": chapter, "number": at + 1, "total": len(CHAPTERS), "before": before, "after": after}
    return render(request, chapter.template, context)
