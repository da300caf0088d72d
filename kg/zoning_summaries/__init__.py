"""Summaries of a municipal code, bottom-up over its sections, and the descent through them to what a question is about.

A summary is text that somebody or something wrote about the law: never a property of it. It stands in a graph of its
own, ``graph/gen/{model}/{municipality}/{section}``, one for each section at any time, and says what it was made from::

    <id/summary/...> a kg:Summary ; kg:summaryOf <id/section/...> ; kg:summaryLevel 1 ; schema:text "..." ;
      kg:promptSha256 "..." ; kg:inputSha256 "..." , ... ; prov:wasDerivedFrom <id/section/...> , <id/summary/...> , ...

Whether it is stale is nowhere written down: `hierarchy` compares the hashes of its inputs with what these are by now.
A load that removes a section removes its summary (`storing.withdrawn`), and a build those that are left of any other.
`building` writes summaries, `descent` reads them.
"""
