"""Reads OpenMetrics text from stdin by the parser of Prometheus's own client, which refuses what the
standard does not allow, and writes its samples as JSON: [family, type, unit, sample, labels, value]."""

import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

families = text_string_to_metric_families(sys.stdin.read())
samples = [
    [family.name, family.type, family.unit, sample.name, sample.labels, sample.value]
    for family in families
    for sample in family.samples
]
json.dump(samples, sys.stdout)
