"""XML that holds whatever text people wrote: escaped by ElementTree, without characters XML 1.0 has no place for."""

import re
import xml.etree.ElementTree as ET

from app.proposals.errors import Fitting

# XML 1.0 production [2] Char: everything else makes a document no parser may read, escaped or not.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
REPLACEMENT = "\ufffd"


def clean(text: str, fitting: Fitting, pointer: str) -> str:
    """Put U+FFFD where a character cannot stand, and say so."""
    found = _FORBIDDEN.sub(REPLACEMENT, text)
    if found != text:
        fitting.adapt(pointer, "text", "characters of XML 1.0", repr(text))
    return found


def add(parent: ET.Element, tag: str, text: str | None = None, **attributes: str) -> ET.Element:
    """Append a child with text."""
    child = ET.SubElement(parent, tag, attributes)
    child.text = text
    return child


def serialise(root: ET.Element, doctype: str = "") -> bytes:
    """Write the document in UTF-8, the same bytes for the same tree."""
    ET.indent(root)
    body = ET.tostring(root, encoding="unicode", short_empty_elements=True)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{doctype}{body}\n'.encode()
