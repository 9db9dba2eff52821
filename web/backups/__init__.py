"""Pages of backups: every folder with its copies, setting them up, running them."""
