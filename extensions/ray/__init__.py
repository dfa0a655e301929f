"""Ray: runs the commands of remote steps on a cluster; the extra `ray`, docs/many-machines.md."""
