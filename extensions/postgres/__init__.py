"""PostgreSQL: homes of many machines; the extra `postgres`, docs/many-machines.md."""
