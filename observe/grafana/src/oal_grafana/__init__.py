"""Grafana for OAL as code: dashboards, alert rules, and what proves that their queries answer."""
