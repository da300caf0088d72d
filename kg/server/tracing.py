"""Export of traces by the SDK of OpenTelemetry (``quadcite[otel]``), as its standard variables ``OTEL_*`` configure it.

Sampling, limits of spans, batches, the resource and the exporters are configured by the SDK itself. Without a variable
that names an exporter or an endpoint, the SDK is not imported.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final

from opentelemetry import trace

from kg.errors import InvalidInputError
from kg.settings import find_trace_exporters
from kg.text import quoted

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

log = logging.getLogger(__name__)

_GROUP: Final = "opentelemetry_traces_exporter"


@contextmanager
def exporting_traces() -> Iterator[None]:
    """Export the spans of the block, if the variables ask for it. Raises InvalidInputError for an unknown exporter.

    A process that has an SDK already, such as one that `opentelemetry-instrument` has started, keeps it.
    """
    provider = build_provider(find_trace_exporters())
    if provider is not None:
        trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        if provider is not None:
            provider.shutdown()  # sends the last spans


def build_provider(exporters: list[str]) -> TracerProvider | None:
    """Build a provider with these exporters; None without any, and if the SDK is missing or in use already."""
    if not exporters:
        return None
    try:
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        log.warning("OTEL_* variables ask for traces, but none are exported: install the extra `quadcite[otel]`.")
        return None
    if isinstance(trace.get_tracer_provider(), TracerProvider):
        return None
    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "quadcite"}))
    provider = TracerProvider(resource=resource)
    available = {point.name: point for point in entry_points(group=_GROUP)}
    for name in exporters:
        if name not in available:
            raise InvalidInputError(
                f"Unknown exporter of traces {quoted(name)} (OTEL_TRACES_EXPORTER, OTEL_EXPORTER_OTLP_PROTOCOL). "
                f"Installed: {', '.join(sorted(available))}."
            )
        provider.add_span_processor(BatchSpanProcessor(available[name].load()()))
    return provider
