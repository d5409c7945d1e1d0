"""The columns of FOCUS 1.2 that a quote can fill, in the order they are written, and ours after them."""

MANDATORY = (
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd",
    "BillingPeriodStart", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodEnd",
    "ChargePeriodStart", "ContractedCost", "EffectiveCost", "InvoiceIssuerName", "ListCost", "PricingQuantity",
    "PricingUnit", "ProviderName", "PublisherName", "ServiceCategory", "ServiceName",
)  # fmt: skip
CONDITIONAL = (
    "ChargeFrequency", "ConsumedQuantity", "ConsumedUnit", "ContractedUnitPrice", "ListUnitPrice", "PricingCategory",
    "PricingCurrency", "RegionId", "ServiceSubcategory", "SkuId", "SkuPriceDetails", "SkuPriceId",
)  # fmt: skip
OWN = (
    "x_QuoteNumber", "x_Revision", "x_QuoteLineId", "x_RfqId", "x_RoundedAmount", "x_IsEstimate", "x_Standing",
    "x_ItemId", "x_LineKind", "x_TaxStatus", "x_HoursBasis", "x_Months",
)  # fmt: skip
COLUMNS = (*MANDATORY, *CONDITIONAL, *OWN)

# Allowed values of ServiceCategory and ServiceSubcategory, by kind of line; everything else is machine time.
SERVICES = {
    "storage": ("Storage", "Other (Storage)"),
    "egress": ("Networking", "Other (Networking)"),
    "contingency": ("Other", "Other (Other)"),
}
MACHINE_TIME = ("Compute", "Virtual Machines")
TAXES = ("Other", "Other (Other)")
FREQUENCIES = {"usage": "Usage-Based", "recurring": "Recurring", "one_off": "One-Time"}
PRICING = {
    "on_demand": "Standard",
    "reserved": "Committed",
    "capacity_block": "Committed",
    "spot": "Dynamic",
    "marketplace": "Dynamic",
    "owned": "Other",
}
