"""Pure money: decimal amounts with a currency, rates, line items, waterfall, ownership cost."""
