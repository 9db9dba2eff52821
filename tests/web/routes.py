"""Every address of Larder with a box in which each of them has something to show."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

JOB = "6b1f6a5e-3f0c-4c2e-9a53-0d5b8f9f6a11"
SWEEP = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
FIRST_DISK = "1813748233032539623"
TANK, PHOTOS = "1443772876214735903", "6683942667665662560"
VAULT, VOLUME = "3709792077802637061", "1189529693"  # the recorded pool is encrypted; the volume is made up
READ, CHANGE, BOTH = ("GET",), ("POST",), ("GET", "POST")


@dataclass(frozen=True)
class Route:
    name: str
    url: str
    methods: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


ROUTES = [
    Route("overview", "/", READ),
    Route("dismiss_step", "/first-steps/user/dismiss/", CHANGE),
    Route("ready", "/ready/", READ),
    Route("search", "/search/", READ),
    Route("help", "/help/", READ),
    Route("setup", "/setup/", BOTH),
    Route("account_login", "/login/", BOTH),
    Route("account_logout", "/logout/", CHANGE),
    Route("account_signup", "/signup/", READ),
    Route("sessions", "/account/sessions/", READ),
    Route("end_session", "/account/sessions/1/end/", CHANGE),
    Route("password", "/account/password/", BOTH),
    Route("preferences", "/account/preferences/", BOTH),
    Route("show_commands", "/account/commands/", CHANGE),
    Route("box", "/system/", READ),
    Route("time_zone", "/system/time-zone/", READ),
    Route("review_power", "/system/power/restart/", READ),
    Route("disks", "/disks/", READ),
    Route("alerts", "/alerts/", READ),
    Route("alert", "/alerts/1/", READ),
    Route("alert_act", "/alerts/1/act/", CHANGE),
    Route("mail_settings", "/alerts/mail/", BOTH),
    Route("mail_test", "/alerts/mail/test/", CHANGE),
    Route("disk_health", "/disks/ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001/health/", READ),
    Route("self_test", "/disks/ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001/health/test/", CHANGE),
    Route("alert_kinds", "/alerts/kinds/", BOTH),
    Route("self_test_plan", "/alerts/tests/", BOTH),
    Route("take_part", "/disks/ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001/health/tests/", CHANGE),
    Route("set_sleep", "/disks/ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001/health/sleep/", CHANGE),
    Route("put_back", "/disks/ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001/health/back/", READ),
    Route("accept_values", "/disks/ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001/health/accept/", CHANGE),
    Route("bays", "/disks/bays/", BOTH),
    Route("locate_disk", "/disks/ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001/locate/", CHANGE),
    Route("disk", "/disks/ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001/", READ),
    Route("wipe_disk", "/disks/ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001/wipe/", READ),
    Route("pools", "/pools/", READ),
    Route("create_pool", "/pools/new/", READ),
    Route("new_key", "/pools/new/key/tank/", READ),
    Route("unlock", "/pools/unlock/", READ),
    Route("import_pools", "/pools/import/", READ),
    Route("search_pools", "/pools/import/look/", CHANGE),
    Route("import_pool", "/pools/import/42/", READ),
    Route("end_pool", f"/pools/{TANK}/end/export/", READ),
    Route("replacements", "/pools/replacements/", READ),
    Route("replacement", "/pools/replacements/1/", READ),
    Route("replacement_offline", "/pools/replacements/1/offline/", CHANGE),
    Route("replacement_accept", "/pools/replacements/1/accept/", READ),
    Route("replacement_close", "/pools/replacements/1/close/", CHANGE),
    Route("replace_disk", f"/pools/{TANK}/replace/", BOTH),
    Route("vdev_act", f"/pools/{TANK}/vdev/{FIRST_DISK}/offline/", READ),
    Route("add_disks", f"/pools/{TANK}/add/spare/", READ),
    Route("pool", f"/pools/{TANK}/", READ),
    Route("scrub_pool", f"/pools/{TANK}/scrub/", CHANGE),
    Route("stop_scrub", f"/pools/{TANK}/scrub/stop/", READ),
    Route("trim_pool", f"/pools/{TANK}/trim/", CHANGE),
    Route("schedule", f"/pools/{TANK}/schedule/scrub/", BOTH),
    Route("pool_settings", f"/pools/{TANK}/settings/", BOTH),
    Route("pool_reports", f"/pools/{TANK}/reports/", READ),
    Route("pool_history", f"/pools/{TANK}/history/", READ),
    Route("pool_events", f"/pools/{TANK}/events/", READ),
    Route("folders", "/folders/", READ),
    Route("create_folder", "/folders/new/", BOTH),
    Route("folder", f"/folders/{PHOTOS}/", READ),
    Route("share_folder", f"/folders/{PHOTOS}/share/", BOTH),
    Route("snapshots", "/snapshots/", READ),
    Route("destroy_snapshots", "/snapshots/destroy/", CHANGE),
    Route("snapshots_of", f"/snapshots/of/{PHOTOS}/", READ),
    Route("take_snapshot", f"/snapshots/of/{PHOTOS}/take/", BOTH),
    Route("snapshot_policy", f"/snapshots/of/{PHOTOS}/policy/", BOTH),
    Route("follow_policy", f"/snapshots/of/{PHOTOS}/policy/follow/", BOTH),
    Route("snapshot_policies", "/snapshots/policies/", READ),
    Route("snapshots_space", "/snapshots/space/", READ),
    Route("snapshot_holds", "/snapshots/holds/", READ),
    Route("bookmarks", f"/snapshots/of/{PHOTOS}/bookmarks/", READ),
    Route("destroy_bookmark", f"/snapshots/of/{PHOTOS}/bookmarks/mark/destroy/", READ),
    Route("snapshot_space", f"/snapshots/of/{PHOTOS}/space/", READ),
    Route("restore", "/snapshots/restore/", READ),
    Route("restore_files", f"/snapshots/of/{PHOTOS}/restore/", READ),
    Route("file_versions", f"/snapshots/of/{PHOTOS}/versions/", READ),
    Route("snapshot_files", f"/snapshots/of/{PHOTOS}/9223372036854775809/files/", READ),
    Route("snapshot_file", f"/snapshots/of/{PHOTOS}/9223372036854775809/file/", READ),
    Route("snapshot_content", f"/snapshots/of/{PHOTOS}/9223372036854775809/content/", READ),
    Route("restore_from_snapshot", f"/snapshots/of/{PHOTOS}/9223372036854775809/restore/", BOTH),
    Route("snapshot_difference", f"/snapshots/of/{PHOTOS}/9223372036854775809/difference/", READ),
    Route("roll_back", f"/snapshots/of/{PHOTOS}/9223372036854775809/roll-back/", READ),
    Route("snapshot", f"/snapshots/of/{PHOTOS}/9223372036854775809/", READ),
    Route("snapshot_act", f"/snapshots/of/{PHOTOS}/9223372036854775809/hold/", BOTH),
    Route("backups", "/backups/", READ),
    Route("new_backup", "/backups/new/", READ),
    Route("add_backup", f"/backups/of/{PHOTOS}/new/", BOTH),
    Route("backup", f"/backups/of/{PHOTOS}/0123abcd/", READ),
    Route("edit_backup", f"/backups/of/{PHOTOS}/0123abcd/edit/", BOTH),
    Route("run_backup", f"/backups/of/{PHOTOS}/0123abcd/run/", CHANGE),
    Route("compare_backup", f"/backups/of/{PHOTOS}/0123abcd/compare/", CHANGE),
    Route("restore_folder", f"/backups/copies/{PHOTOS}/restore/", BOTH),
    Route("set_copy_aside", f"/backups/of/{PHOTOS}/0123abcd/aside/{PHOTOS}/", READ),
    Route("remove_backup", f"/backups/of/{PHOTOS}/0123abcd/remove/", READ),
    Route("switch_share", f"/folders/{PHOTOS}/switch/smb/on/", CHANGE),
    Route("unlock_all", "/folders/unlock-all/", READ),
    Route("volumes", "/folders/volumes/", READ),
    Route("create_volume", "/folders/volumes/new/", BOTH),
    Route("folder_settings", f"/folders/{PHOTOS}/settings/", READ),
    Route("folder_setting", f"/folders/{PHOTOS}/settings/compression/", BOTH),
    Route("inherit_setting", f"/folders/{PHOTOS}/settings/compression/inherit/", CHANGE),
    Route("rename_folder", f"/folders/{PHOTOS}/rename/", READ),
    Route("folder_act", f"/folders/{PHOTOS}/do/unmount/", READ),
    Route("destroy_folder", f"/folders/{PHOTOS}/destroy/", READ),
    Route("folder_people", f"/folders/{PHOTOS}/space/", BOTH),
    Route("folder_key", f"/folders/{VAULT}/key/", READ),
    Route("folder_key_act", f"/folders/{VAULT}/key/lock/", READ),
    Route("grow_volume", f"/folders/{VOLUME}/grow/", BOTH),
    Route("share_new_folder", "/shares/new/", READ),
    Route("share_nfs", f"/shares/{PHOTOS}/nfs/", BOTH),
    Route("share_afp", f"/shares/{PHOTOS}/afp/", BOTH),
    Route("ways", f"/shares/{PHOTOS}/nfs/ways/", READ),
    Route("why", f"/shares/{PHOTOS}/nfs/why/", READ),
    Route("look_at_share", f"/shares/{PHOTOS}/nfs/look/", CHANGE),
    Route("mend_share", f"/shares/{PHOTOS}/nfs/mend/serve/", BOTH),
    Route("connected", "/shares/connected/", READ),
    Route("end_connection", "/shares/connected/smb-1/end/", CHANGE),
    Route("protection", "/shares/protection/", READ),
    Route("edits", "/shares/by-hand/", READ),
    Route("decide_edit", "/shares/by-hand/smb/overwrite/", READ),
    Route("users", "/users/", READ),
    Route("create_user", "/users/new/", BOTH),
    Route("user_password", "/users/anna/password/", READ),
    Route("user", "/users/anna/account/", READ),
    Route("rename_user", "/users/anna/name/", CHANGE),
    Route("switch_user", "/users/anna/switch/", CHANGE),
    Route("remove_user", "/users/anna/remove/", READ),
    Route("create_group", "/groups/new/", BOTH),
    Route("group", "/groups/family/members/", BOTH),
    Route("remove_group", "/groups/family/remove/", READ),
    Route("folder_access", f"/folders/{PHOTOS}/access/", BOTH),
    Route("jobs", "/jobs/", READ),
    Route("confirm", "/jobs/confirm/", CHANGE),
    Route("job", f"/jobs/{JOB}/", READ),
    Route("stop_job", f"/jobs/{JOB}/stop/", CHANGE),
    Route("acknowledge_job", f"/jobs/{JOB}/acknowledge/", CHANGE),
    Route("benchmarks", "/benchmarks/", READ),
    Route("new_benchmark", "/benchmarks/new/pool/", READ),
    Route("start_benchmark", "/benchmarks/start/", CHANGE),
    Route("compare_benchmarks", f"/benchmarks/{SWEEP}/with/{SWEEP}/", READ),
    Route("benchmark", f"/benchmarks/{SWEEP}/", READ),
    Route("benchmark_over_time", f"/benchmarks/{SWEEP}/over-time/", READ),
    Route("benchmark_again", f"/benchmarks/{SWEEP}/again/", READ),
    Route("act_benchmark", f"/benchmarks/{SWEEP}/act/pause/", CHANGE),
    Route("forget_benchmark", f"/benchmarks/{SWEEP}/forget/", CHANGE),
    Route("export_benchmark", f"/benchmarks/{SWEEP}/export/csv/", READ),
    Route("again_job", f"/jobs/{JOB}/again/", READ),
]
OPEN_TO_ALL = {"setup", "ready", "account_login", "account_signup", "account_logout"}
ALL_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "TRACE")
# Parametrize a test by these.
closed = pytest.mark.parametrize("route", [route for route in ROUTES if route.name not in OPEN_TO_ALL], ids=str)
changing = pytest.mark.parametrize("route", [route for route in ROUTES if "POST" in route.methods and route.name != "setup"], ids=str)  # fmt: skip
pages = pytest.mark.parametrize("route", [route for route in ROUTES if "GET" in route.methods and route.name != "setup"], ids=str)  # fmt: skip
# Where an address given in a form must never lead.
ELSEWHERE = [
    "https://evil.example/", "//evil.example/", "/\\evil.example/", "///evil.example", "/\t/evil.example", "\\/evil.example",
    "javascript:alert(1)", "http:evil", "evil", "/\n/evil.example", "data:text/html,x", " //evil.example",
]  # fmt: skip
