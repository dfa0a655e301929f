"""OpenTelemetry: the journal of a session as traces and metrics; the extra `otel`, docs/telemetry.md.

`spans.py` translates entries into spans, and knows nothing of the SDK; `otlp.py` sends spans to a
collector, or writes them as JSON; `feed.py` does that while sessions run, and for old ones. Only sending
needs the extra, which is imported then.
"""
