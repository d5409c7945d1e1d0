"""From a citation to an address a reader can open."""

import pytest

from app.catalog.citations import address_of


@pytest.mark.parametrize(
    ("citation", "address"),
    [
        (
            "github.com/aws/karpenter-provider-aws@1d92708 pkg/pricing/zz_generated.pricing_aws.go (AWS price list)",
            "https://github.com/aws/karpenter-provider-aws/blob/1d92708/pkg/pricing/zz_generated.pricing_aws.go",
        ),
        ("github.com/a/b@27bcc25 plans file (x)", "https://github.com/a/b/tree/27bcc25/plans"),
        ("docs.digitalocean.com/products/pricing/ validated", "https://docs.digitalocean.com/products/pricing/"),
        ("api-evangelist/runpod plans/runpod.yml (verbatim from runpod.io/pricing)", "https://runpod.io/pricing"),
        ("PyPI gpuhunt 0.1.34 (2026-10-20) crusoe.py from crusoe.ai/cloud", "https://pypi.org/project/gpuhunt/0.1.34/"),
        ("huggingface dataset brian8808/gpu-price-index", "https://huggingface.co/datasets/brian8808/gpu-price-index"),
        ("typed in from an offer letter of 2026-11-02", None),
    ],
)
def test_an_address_is_read_from_a_citation(citation, address):
    assert address_of(citation) == address


def test_every_shipped_price_names_an_address(shipped):
    without = {
        row.source.citation for rows in shipped.prices.values() for row in rows if not address_of(row.source.citation)
    }
    assert without == set()
