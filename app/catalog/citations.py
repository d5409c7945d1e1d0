"""From a citation to an address a reader can open."""

import re

_REPOSITORY = re.compile(
    r"(?:https://)?github\.com/(?P<owner>[\w.-]+)/(?P<name>[\w.-]+?)(?:@(?P<commit>[0-9a-f]{7,40}))?"
    r"(?:[ /](?P<path>[\w./\[\]+-]*[\w\]]))?(?=[\s;,(]|$)",
    re.ASCII,
)
# A host and perhaps a path, as authors write them without a scheme: "docs.digitalocean.com/products/gradient". Only
# top-level domains that occur in citations, since "prices.yml" has the form of a host too.
_PAGE = re.compile(
    r"(?:https?://)?(?P<place>(?:[a-z0-9-]+\.)+(?:com|org|net|io|ai|dev|co|cloud|network|eu|gov|edu|cn|info|blog|team)"
    r"(?:/[\w./%~+-]*)?)(?=[\s;,()]|$)",
    re.ASCII,
)
_DATASET = re.compile(r"huggingface dataset (?P<place>[\w.-]+/[\w.-]+)", re.ASCII)
_PACKAGE = re.compile(r"PyPI (?P<name>[\w.-]+)(?: (?P<version>[0-9][\w.]*))?", re.ASCII)


def address_of(citation: str) -> str | None:
    """Give the web address a citation names; None where it names none (a person, a book, a law).

    A repository's file is shown at the commit it was read at, so that the reader sees what was read.
    """
    package = _PACKAGE.match(citation)
    if package is not None:
        return "https://pypi.org/project/" + "/".join(part for part in package.groups() if part) + "/"
    found = _REPOSITORY.search(citation)
    if found is not None:
        base = f"https://github.com/{found['owner']}/{found['name']}"
        place = found["commit"] or "HEAD"
        if found["path"]:
            return f"{base}/{'blob' if '.' in found['path'] else 'tree'}/{place}/{found['path']}"
        return f"{base}/tree/{place}" if found["commit"] else base
    dataset = _DATASET.search(citation)
    if dataset is not None:
        return f"https://huggingface.co/datasets/{dataset['place']}"
    page = _PAGE.search(citation)
    if page is not None:
        return f"https://{page['place']}"
    return None
