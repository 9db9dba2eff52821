#!/bin/sh
# ZED runs this for every event of ZFS (zed(8): zedlets named all-*). Configuration writes are no news to a user.
[ "${ZEVENT_SUBCLASS:-}" = config_sync ] || exec /usr/local/lib/larder/spool
