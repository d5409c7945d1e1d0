"""Speculative decoding and multi-token prediction: tokens a step advances."""


def accepted_tokens(draft_tokens: int, acceptance: float) -> float:
    """Mean tokens one verification step yields [token].

    Parameters
    ----------
    draft_tokens : int
        Draft tokens a step, 0 = none.
    acceptance : float [1]
        Probability that a draft token is accepted, given that those before it were.

    Returns
    -------
    float [token]
        ``(1 - a^(k+1)) / (1 - a)``, between 1 and k + 1.

    References
    ----------
    1. Leviathan, Kalman and Matias, "Fast Inference from Transformers via Speculative Decoding", 2023, equation 1.
    """
    if not 0.0 <= acceptance <= 1.0 or draft_tokens < 0:
        raise ValueError(f"acceptance lies in [0, 1] and draft tokens count from 0, got {acceptance}, {draft_tokens}")
    if acceptance >= 1.0:
        return draft_tokens + 1.0
    return float((1.0 - acceptance ** (draft_tokens + 1)) / (1.0 - acceptance))
