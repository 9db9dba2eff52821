"""Search for pages and things of the box: pools, folders, disks, users, shares, and what can be done."""
