"""Summaries of municipal zoning codes, built bottom-up over their sections, and the ranking of sections.

A summary is a text about the law, never a property of it. Each section has at most one, in its own graph
``graph/gen/{model}/{municipality}/{section}``, with hashes of what it was made from::

    <id/summary/...> a kg:Summary ; kg:summaryOf <id/section/...> ; kg:summaryLevel 1 ; schema:text "..." ;
      kg:promptSha256 "..." ; kg:inputSha256 "..." , ... ; prov:wasDerivedFrom <id/section/...> , <id/summary/...> , ...

Staleness is not stored: `code_tree` compares the hashes of a summary with those of its inputs now. A load that removes
a section removes its summary (`loaders.zoning.graph.derive`), and a build removes other orphans. `build` writes
summaries. The agent in their provenance is ``kg.summaries``.
"""
