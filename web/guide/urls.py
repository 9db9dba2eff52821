from django.urls import path

from web.guide import views

urlpatterns = [
    path("", views.list_chapters, name="guide"),
    path("<slug:slug>/", views.show_chapter, name="guide_chapter"),
]
