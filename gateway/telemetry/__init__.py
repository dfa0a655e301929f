"""Telemetry: the journal of a session as traces and metrics of OpenTelemetry.

`spans.py` translates entries into spans, and knows nothing of the SDK; `otlp.py` sends spans to a
collector, or writes them as JSON; `feed.py` does that while sessions run, and for old ones. Only sending
needs the extra `otel`, which is imported then.
"""
