"""ISO 4217 currency codes and the number of decimals each is settled in.

The table is a fact of the standard, not a setting: minor units as in ISO 4217 "List One" of the maintenance agency
(SIX Group, https://www.six-group.com/en/products-services/financial-information/data-standards.html). Funds and metals
without a minor unit are left out: nothing is quoted in them.
"""

from app.pricing.errors import CurrencyUnknownError

# ISO 4217 List One, minor unit 2
_TWO = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP "
    "CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR "
    "JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN "
    "NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP "
    "SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VES WST XCD YER ZAR ZMW"
)
# ISO 4217 List One, minor unit 0
_ZERO = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
# ISO 4217 List One, minor unit 3
_THREE = "BHD IQD JOD KWD LYD OMR TND"
# ISO 4217 List One, minor unit 4
_FOUR = "CLF UYW"

EXPONENTS: dict[str, int] = {
    code: exponent for exponent, codes in ((0, _ZERO), (2, _TWO), (3, _THREE), (4, _FOUR)) for code in codes.split()
}


def exponent(currency: str) -> int:
    """Decimals of the currency's minor unit: JPY 0, USD 2, KWD 3.

    Raises
    ------
    CurrencyUnknownError
        The code is not in ISO 4217; nothing is guessed.
    """
    try:
        return EXPONENTS[currency]
    except KeyError:
        raise CurrencyUnknownError(currency) from None
