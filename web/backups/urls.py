"""Addresses of backups."""

from __future__ import annotations

from django.urls import path

from web.backups import pair_views, proof_views, recovery_views, remote_restore, remote_views, restore_views, views

urlpatterns = [
    path("pair/", pair_views.accept_pairing, name="accept_pairing"),
    path("receiving/", pair_views.list_receivers, name="receivers"),
    path("receiving/new/", pair_views.receive_copies, name="receive_copies"),
    path("receiving/<str:key>/", pair_views.show_receiver, name="receiver"),
    path("receiving/<str:key>/retention/", pair_views.set_retention, name="received_retention"),
    path("receiving/<str:key>/code/", pair_views.show_code, name="pairing_code"),
    path("receiving/<str:key>/withdraw/", pair_views.withdraw_code, name="withdraw_pairing_code"),
    path("receiving/<str:key>/remove/", pair_views.remove_receiver, name="remove_receiver"),
    path("", views.list_backups, name="backups"),
    path("new/", views.choose_folder, name="new_backup"),
    path("recovery/", recovery_views.show_recovery, name="recovery"),
    path("recovery/new-phrase/", recovery_views.make_phrase, name="make_phrase"),
    path("recovery/<str:key>/<str:box>/", recovery_views.show_box, name="other_box"),
    path("recovery/<str:key>/<str:box>/take-place/", recovery_views.take_place, name="take_place"),
    path(
        "recovery/<str:key>/<str:box>/share/<str:folder>/<str:dataset>/",
        recovery_views.share_again,
        name="share_again",
    ),
    path("recovery/confirm/", recovery_views.confirm_phrase, name="confirm_phrase"),
    path("computers/", remote_views.list_remotes, name="remotes"),
    path("computers/new/", remote_views.add_remote, name="add_remote"),
    path("computers/pair/", pair_views.pair_box, name="pair_box"),
    path("computers/larder-peer/", remote_views.download_peer, name="download_peer"),
    path("computers/<str:key>/", remote_views.show_remote, name="remote"),
    path("computers/<str:key>/test/", remote_views.test_remote, name="test_remote"),
    path("computers/<str:key>/host-key/", remote_views.confirm_host_key, name="confirm_host_key"),
    path("computers/<str:key>/remove/", remote_views.remove_remote, name="remove_remote"),
    path("computers/<str:key>/copies/", remote_restore.list_copies, name="remote_copies"),
    path("computers/<str:key>/copies/<path:copy>/restore/", remote_restore.restore_copy, name="restore_remote"),
    path("copies/<str:key>/restore/", restore_views.restore_folder, name="restore_folder"),
    path("of/<str:key>/new/", views.edit_backup, name="add_backup"),
    path("of/<str:key>/<str:task>/", views.show_backup, name="backup"),
    path("of/<str:key>/<str:task>/edit/", views.edit_backup, name="edit_backup"),
    path("of/<str:key>/<str:task>/run/", views.run_backup, name="run_backup"),
    path("of/<str:key>/<str:task>/compare/", views.compare_backup, name="compare_backup"),
    path("of/<str:key>/<str:task>/drill/", proof_views.drill_backup, name="drill_backup"),
    path("of/<str:key>/<str:task>/key/", proof_views.try_key, name="try_backup_key"),
    path("of/<str:key>/<str:task>/discard/<str:copy>/", proof_views.discard_received, name="discard_received"),
    path("of/<str:key>/<str:task>/aside/<str:copy>/", views.set_copy_aside, name="set_copy_aside"),
    path("of/<str:key>/<str:task>/remove/", views.remove_backup, name="remove_backup"),
]
