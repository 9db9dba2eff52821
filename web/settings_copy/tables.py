"""What becomes of each table of Larder's databases when the system disk is lost.
A test fails for one that is not here."""

from __future__ import annotations

# By table, the group of ``settings.json`` that keeps what an owner would have to enter again.
KEPT = {
    "larder_system.BoxChoices": "box",
    "larder_alerts.MailSettings": "notifications",  # not the webhook: its address is often a secret
    "larder_alerts.KindSeverity": "levels",
    "larder_alerts.Accepted": "accepted",
    "larder_alerts.DiskCare": "disks",
    "larder_alerts.SelfTestPlan": "self_tests",
    "larder_pools.CareSchedule": "care",
    "larder_pools.DiskPrice": "price",
    "larder_pools.GrowthPlan": "growth",
    "bays.BayRow": "bays",
    "larder_accounts.Preferences": "pages",
    "larder_snapshots.MadeSnapshot": "snapshots",
}

READ_AGAIN = "read again from the system"
HISTORY = "history: nothing depends on it"
SIGN_IN = "sign-in: a box that lost its settings is set up with a new password"
DJANGO = "Django's own, made by its migrations"
SHORT_LIVED = "says something of this moment only"

LEFT_OUT = {
    "auth.Permission": DJANGO,
    "auth.Group": DJANGO,
    "auth.Group_permissions": DJANGO,
    "auth.User_groups": DJANGO,
    "auth.User_user_permissions": DJANGO,
    "contenttypes.ContentType": DJANGO,
    "auth.User": SIGN_IN,  # it has the hash of the administrator's password
    "sessions.Session": SIGN_IN,
    "account.EmailAddress": SIGN_IN,
    "account.EmailConfirmation": SIGN_IN,
    "usersessions.UserSession": SIGN_IN,
    "larder_alerts.Alert": HISTORY,
    "larder_alerts.AlertNote": HISTORY,
    "larder_alerts.Message": HISTORY,
    "larder_alerts.DiskDay": HISTORY,
    "larder_alerts.PoolDay": HISTORY,
    "jobs.Job": HISTORY,
    "larder_pools.WorkReport": HISTORY,
    "larder_backups.BackupRecord": "read again from the copies; comparisons start over",
    "bays.Replacement": "the state of the pool is the truth; the guide can be started again",
    "bays.BurnIn": HISTORY,
    "sweeps.ClientRunRow": HISTORY,
    "sweeps.SweepRow": HISTORY,
    "sweeps.CaseRow": HISTORY,
    "sweeps.ResultRow": HISTORY,
    "larder_overview.DismissedStep": "dismissed again with one click",
    "larder_snapshots.PolicyRun": SHORT_LIVED,
    "larder_snapshots.ClockRow": SHORT_LIVED,
    "inventory.PoolRow": READ_AGAIN,
    "inventory.PropertiesRow": READ_AGAIN,
    "inventory.DatasetRow": READ_AGAIN,
    "inventory.DiskRow": READ_AGAIN,
    "inventory.ServiceRow": READ_AGAIN,
    "inventory.ShareRow": READ_AGAIN,
    "inventory.AccountRow": READ_AGAIN,
    "inventory.GroupRow": READ_AGAIN,
    "inventory.CachingRow": READ_AGAIN,
    "inventory.ImportableRow": READ_AGAIN,
    "inventory.DetailRow": READ_AGAIN,
    "inventory.DatasetDetailRow": READ_AGAIN,
    "inventory.SessionRow": READ_AGAIN,
    "inventory.SnapshotRow": READ_AGAIN,
    "inventory.BookmarkRow": READ_AGAIN,
    "inventory.SnapshotReading": READ_AGAIN,
    "inventory.SeenRow": READ_AGAIN,
    "inventory.PolicyRow": READ_AGAIN,
    "inventory.ConnectionRow": READ_AGAIN,
    "inventory.BoxRow": READ_AGAIN,
    "inventory.RemoteRow": READ_AGAIN,
    "inventory.ReceiverRow": READ_AGAIN,
    "inventory.ImportRow": READ_AGAIN,
    "inventory.EditRow": READ_AGAIN,
    "inventory.TargetEditRow": READ_AGAIN,
    "inventory.Source": READ_AGAIN,
    "inventory.Activity": READ_AGAIN,
    "inventory.Progress": READ_AGAIN,
    "inventory.Event": READ_AGAIN,
    "inventory.HistoryLine": READ_AGAIN,
}
