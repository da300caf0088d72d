"""Actions that the default policies name, for policies about made-up actions."""

from __future__ import annotations

from kg.access.policies import Action

NAMED = (
    Action("graphs.put", ("Family",)),
    Action("graphs.post", ("Family",)),
    Action("graphs.delete", ("Family",)),
    Action("graphs.update", ("Family",)),
    Action("see", ("Dataset", "Family")),
    Action("look", ("Tool",), ("tools",)),
    Action("ping", ("Endpoint",), ("endpoints",)),
)
