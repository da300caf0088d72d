"""Languages as BCP 47 codes, whether a source has codes (``zh-cn``) or English names (``Chinese``)."""

from __future__ import annotations

import re
from typing import Final

_TAG: Final = re.compile(
    r"(?P<language>[a-z]{2,3})(?:-(?P<script>[a-z]{4}))?(?:-(?P<region>[a-z]{2}|[0-9]{3}))?(?P<variants>(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*)"
)

_ISO_639_1: Final = """
aa Afar;ab Abkhazian;ae Avestan;af Afrikaans;ak Akan,Twi;am Amharic;an Aragonese;ar Arabic;as Assamese;av Avaric;
ay Aymara;az Azerbaijani;ba Bashkir;be Belarusian;bg Bulgarian;bi Bislama;bm Bambara;bn Bengali,Bangla;bo Tibetan;
br Breton;bs Bosnian;ca Catalan,Valencian;ce Chechen;ch Chamorro;co Corsican;cr Cree;cs Czech;cu Church Slavic;
cv Chuvash;cy Welsh;da Danish;de German;dv Divehi,Dhivehi,Maldivian;dz Dzongkha;ee Ewe;el Greek,Modern Greek;
en English;eo Esperanto;es Spanish,Castilian;et Estonian;eu Basque;fa Persian,Farsi;ff Fulah;fi Finnish;fj Fijian;
fo Faroese;fr French;fy Western Frisian;ga Irish;gd Scottish Gaelic,Gaelic;gl Galician;gn Guarani;gu Gujarati;gv Manx;
ha Hausa;he Hebrew;hi Hindi;ho Hiri Motu;hr Croatian;ht Haitian,Haitian Creole;hu Hungarian;hy Armenian;hz Herero;
ia Interlingua;id Indonesian;ie Interlingue;ig Igbo;ii Sichuan Yi;ik Inupiaq;io Ido;is Icelandic;it Italian;
iu Inuktitut;ja Japanese;jv Javanese;ka Georgian;kg Kongo;ki Kikuyu;kj Kuanyama;kk Kazakh;kl Kalaallisut,Greenlandic;
km Khmer,Central Khmer;kn Kannada;ko Korean;kr Kanuri;ks Kashmiri;ku Kurdish;kv Komi;kw Cornish;ky Kyrgyz,Kirghiz;
la Latin;lb Luxembourgish;lg Ganda,Luganda;li Limburgan;ln Lingala;lo Lao,Laotian;lt Lithuanian;lu Luba-Katanga;
lv Latvian;mg Malagasy;mh Marshallese;mi Maori;mk Macedonian;ml Malayalam;mn Mongolian;mr Marathi;ms Malay;mt Maltese;
my Burmese;na Nauru,Nauruan;nb Norwegian Bokmål;nd North Ndebele;ne Nepali;ng Ndonga;nl Dutch,Flemish;
nn Norwegian Nynorsk;no Norwegian;nr South Ndebele;nv Navajo;ny Chichewa,Nyanja;oc Occitan;oj Ojibwa;om Oromo;or Oriya;
os Ossetian;pa Punjabi,Panjabi;pi Pali;pl Polish;ps Pashto,Pushto;pt Portuguese;qu Quechua;rm Romansh;rn Rundi,Kirundi;
ro Romanian,Moldavian,Moldovan;ru Russian;rw Kinyarwanda;sa Sanskrit;sc Sardinian;sd Sindhi;se Northern Sami;sg Sango;
si Sinhala,Sinhalese;sk Slovak;sl Slovenian,Slovene;sm Samoan;sn Shona;so Somali;sq Albanian;sr Serbian;ss Swati;
st Southern Sotho,Sesotho;su Sundanese;sv Swedish;sw Swahili,Kiswahili;ta Tamil;te Telugu;tg Tajik;th Thai;
ti Tigrinya;tk Turkmen;tl Tagalog;tn Tswana,Setswana;to Tongan;tr Turkish;ts Tsonga;tt Tatar;ty Tahitian;
ug Uighur,Uyghur;uk Ukrainian;ur Urdu;uz Uzbek;ve Venda;vi Vietnamese;vo Volapük;wa Walloon;wo Wolof;xh Xhosa;
yi Yiddish;yo Yoruba;za Zhuang;zh Chinese,Mandarin;zu Zulu;fil Filipino;tet Tetum,Tetun;crs Seychellois Creole
"""

_CODES: Final[dict[str, str]] = {
    name.casefold(): code
    for code, _, names in (entry.strip().partition(" ") for entry in _ISO_639_1.split(";"))
    for name in names.split(",")
}

_REPLACED: Final = {"iw": "he", "in": "id", "ji": "yi", "jw": "jv", "mo": "ro", "sh": "sr-Latn"}
"""Codes that the IANA registry marks as deprecated, with their preferred value."""


def language_code(text: str) -> str | None:
    """Return the BCP 47 code that `text` is or names, in canonical case (``zh-CN``), or None when it is neither.

    The names are those of ISO 639-1 in English, with common variants (``Farsi``, ``Castilian``).
    """
    named = _CODES.get(text.strip().casefold())
    if named is not None:
        return named
    match = _TAG.fullmatch(text.strip().replace("_", "-").casefold())
    if match is None:
        return None
    language = _REPLACED.get(match["language"], match["language"])
    script = f"-{match['script'].title()}" if match["script"] and "-" not in language else ""
    region = f"-{match['region'].upper()}" if match["region"] else ""
    return f"{language}{script}{region}{match['variants']}"
