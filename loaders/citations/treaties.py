"""Treaties that texts cite by name, with the names and acronyms that mean no other."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from loaders.citations.patterns import build_alternatives


class Treaty(NamedTuple):
    """A treaty: its key and full name, the year of its adoption, and further names."""

    key: str
    name: str
    year: int
    names: tuple[str, ...] = ()


_UN: Final = "United Nations "
TREATIES: Final = (
    Treaty("paris-agreement", "Paris Agreement", 2015, ("Paris Climate Agreement", "Paris Climate Change Agreement")),
    Treaty("kyoto-protocol", "Kyoto Protocol", 1997),
    Treaty("unfccc", f"{_UN}Framework Convention on Climate Change", 1992,
           ("Framework Convention on Climate Change", "UN Framework Convention on Climate Change", "UNFCCC")),
    Treaty("doha-amendment", "Doha Amendment", 2012),
    Treaty("montreal-protocol", "Montreal Protocol", 1987),
    Treaty("kigali-amendment", "Kigali Amendment", 2016),
    Treaty("vienna-convention-ozone", "Vienna Convention for the Protection of the Ozone Layer", 1985),
    Treaty("convention-biological-diversity", "Convention on Biological Diversity", 1992),
    Treaty("cartagena-protocol", "Cartagena Protocol", 2000),
    Treaty("nagoya-protocol", "Nagoya Protocol", 2010),
    Treaty("convention-combat-desertification", f"{_UN}Convention to Combat Desertification", 1994,
           ("Convention to Combat Desertification", "UNCCD")),
    Treaty("ramsar-convention", "Ramsar Convention", 1971, ("Convention on Wetlands",)),
    Treaty("cites", "Convention on International Trade in Endangered Species", 1973),
    Treaty("basel-convention", "Basel Convention", 1989),
    Treaty("rotterdam-convention", "Rotterdam Convention", 1998),
    Treaty("stockholm-convention", "Stockholm Convention", 2001),
    Treaty("minamata-convention", "Minamata Convention", 2013),
    Treaty("aarhus-convention", "Aarhus Convention", 1998),
    Treaty("espoo-convention", "Espoo Convention", 1991),
    Treaty("marpol", "International Convention for the Prevention of Pollution from Ships", 1973, ("MARPOL",)),
    Treaty("unclos", f"{_UN}Convention on the Law of the Sea", 1982, ("Convention on the Law of the Sea", "UNCLOS")),
    Treaty("world-heritage-convention", "World Heritage Convention", 1972),
    Treaty("antarctic-treaty", "Antarctic Treaty", 1959),
    Treaty("madrid-protocol", "Protocol on Environmental Protection to the Antarctic Treaty", 1991),
    Treaty("energy-charter-treaty", "Energy Charter Treaty", 1994),
    Treaty("tfeu", "Treaty on the Functioning of the European Union", 2007, ("TFEU",)),
    Treaty("teu", "Treaty on European Union", 1992),
    Treaty("refugee-convention", "Convention relating to the Status of Refugees", 1951,
           ("Convention Relating to the Status of Refugees", "Refugee Convention", "Refugees Convention")),
    Treaty("convention-rights-child", "Convention on the Rights of the Child", 1989),
    Treaty("cedaw", "Convention on the Elimination of All Forms of Discrimination against Women", 1979,
           ("Convention on the Elimination of All Forms of Discrimination Against Women", "CEDAW")),
    Treaty("iccpr", "International Covenant on Civil and Political Rights", 1966, ("ICCPR",)),
    Treaty("icescr", "International Covenant on Economic, Social and Cultural Rights", 1966, ("ICESCR",)),
    Treaty("rome-statute", "Rome Statute of the International Criminal Court", 1998),
    Treaty("north-atlantic-treaty", "North Atlantic Treaty", 1949),
    Treaty("anzus-treaty", "ANZUS Treaty", 1951, ("ANZUS treaty",)),
)  # fmt: skip

BY_NAME: Final = {name: treaty for treaty in TREATIES for name in (treaty.name, *treaty.names)}
_NAMES: Final = [re.escape(name).replace(r"\ ", r"\s+") for name in sorted(BY_NAME, key=len, reverse=True)]
PATTERN: Final = re.compile(rf"(?:{build_alternatives(_NAMES)})(?![\w-])")
_ACRONYMS: Final = [name for name in BY_NAME if name.isupper() and " " not in name]
SIGNS: Final = (
    "Protocol",
    "Convention",
    "Agreement",
    "Treaty",
    "treaty",
    "Amendment",
    "Covenant",
    "Statute",
    *_ACRONYMS,
)
"""Words of which each name contains one."""
