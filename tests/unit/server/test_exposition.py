"""tidegate.server.exposition: the exact bytes of both formats, and Prometheus' own parsers on them."""

from __future__ import annotations

import pytest

from tidegate.server.exposition import COUNTER, OPENMETRICS, PROMETHEUS, Family, content_type, gauge, text

FAMILIES = [
    Family("tidegate_things", COUNTER, 'a\\b "c"\nd', (({"kind": 'x"y\\z\nw'}, 3), ({"kind": ""}, 0))),
    gauge("tidegate_lag_seconds", "Late", 0.25),
    Family("tidegate_none", COUNTER, "Nothing yet", ()),
]


def test_the_older_format() -> None:
    """JRN-6: version 0.0.4: help escapes the backslash and the line end, a label the quote too."""
    assert text(FAMILIES, PROMETHEUS).decode() == (
        '# HELP tidegate_things_total a\\\\b "c"\\nd\n'
        "# TYPE tidegate_things_total counter\n"
        'tidegate_things_total{kind="x\\"y\\\\z\\nw"} 3\n'
        'tidegate_things_total{kind=""} 0\n'
        "# HELP tidegate_lag_seconds Late\n"
        "# TYPE tidegate_lag_seconds gauge\n"
        "tidegate_lag_seconds 0.25\n"
        "# HELP tidegate_none_total Nothing yet\n"
        "# TYPE tidegate_none_total counter\n"
    )


def test_openmetrics() -> None:
    """JRN-6: the family without `_total`, quotes escaped in help, and an end."""
    found = text(FAMILIES, OPENMETRICS).decode()
    assert '# HELP tidegate_things a\\\\b \\"c\\"\\nd\n# TYPE tidegate_things counter\n' in found
    assert 'tidegate_things_total{kind="x\\"y\\\\z\\nw"} 3\n' in found
    assert found.endswith("\n# EOF\n")


def test_the_parsers_of_prometheus_read_them() -> None:
    """JRN-6: both formats, with the labels as they were."""
    parser = pytest.importorskip("prometheus_client.parser", reason="prometheus-client is not installed")
    strict = pytest.importorskip("prometheus_client.openmetrics.parser")
    for parse, kind in (
        (parser.text_string_to_metric_families, PROMETHEUS),
        (strict.text_string_to_metric_families, OPENMETRICS),
    ):
        found = {one.name: one for one in parse(text(FAMILIES, kind).decode())}
        assert set(found) == {"tidegate_things", "tidegate_lag_seconds", "tidegate_none"}
        assert [(one.labels, one.value) for one in found["tidegate_things"].samples] == [
            ({"kind": 'x"y\\z\nw'}, 3.0),
            ({"kind": ""}, 0.0),
        ]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", PROMETHEUS),
        ("*/*", PROMETHEUS),
        ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", PROMETHEUS),
        ("application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", OPENMETRICS),
        ("text/plain, application/openmetrics-text", OPENMETRICS),
        ("application/openmetrics-text;q=0, text/plain", PROMETHEUS),
        ("x-application/openmetrics-text", PROMETHEUS),
    ],
)
def test_which_format_a_scraper_gets(accept: str, kind: str) -> None:
    """JRN-6: OpenMetrics where its name is in Accept."""
    assert content_type(accept) == kind
