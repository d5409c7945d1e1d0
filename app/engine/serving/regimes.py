"""Steady states of a replica: closed loop, offline and static batch, as one model of iterations.

Shapes are ``(plans, 1)`` throughout.
"""

from dataclasses import dataclass

import numpy as np

from app.engine.serving.operators import Floats, Operators
from app.engine.serving.step import Iteration, Rates, StepTime, step_seconds

# a draft token costs about a layer and the head, against all layers of a verification step; the multi-token-prediction
# layer of DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 2.2
DRAFT_LAYERS = 2.0
# rounds of the fixed point between batch and iteration time; it contracts by the prefill share of the time each round
ROUNDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Requests as the iterations see them; arrays ``(plans, 1)``.

    Parameters
    ----------
    prompt : array [token]
        Prompt tokens that are not in the prefix cache.
    cached : array [token]
        Prompt tokens that are.
    output : array [token]
    chunk : array [token]
        Prompt tokens an iteration may hold.
    draft : array [token]
        Draft tokens a step, 0 = no speculation.
    accepted : array [token]
        Tokens a step advances, 1 without speculation.
    together : array [1]
        How far requests arrive in bursts: 0 = spread evenly, 1 = all at once.
    """

    prompt: Floats
    cached: Floats
    output: Floats
    chunk: Floats
    draft: Floats
    accepted: Floats
    together: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """A replica in steady state; arrays ``(plans, 1)``.

    Parameters
    ----------
    requests_per_s : array [request/s]
    iteration_s : array [s]
        Mean time between two output steps of a sequence, prefill of others included.
    prefill_s : array [s]
        Engine time a request's prefill adds.
    first_token_s : array [s]
        From admission to the first token, without queueing.
    decode_s : array [s]
        A pure decode iteration.
    decoding : array [sequence]
    times : StepTime
        Of the pure decode iteration and of one with a chunk of prefill, ``(plans, 2)``.
    """

    requests_per_s: Floats
    iteration_s: Floats
    prefill_s: Floats
    first_token_s: Floats
    decode_s: Floats
    decoding: Floats
    times: StepTime


def _cases(requests: Requests, decoding: Floats, chunk: Floats) -> Iteration:
    """A pure decode iteration and one with a chunk of prefill, side by side."""
    zero = np.zeros_like(decoding)
    context = requests.cached + requests.prompt + requests.output * 0.5
    return Iteration(
        sequences=np.concatenate([decoding, decoding], axis=1),
        tokens_per_sequence=1.0 + requests.draft,
        context=context,
        prefill_tokens=np.concatenate([zero, chunk], axis=1),
        prompt=requests.prompt + 2.0 * requests.cached,
    )


def steady_state(o: Operators, r: Rates, requests: Requests, running: Floats) -> Steady:
    """Steady state with a given number of requests in the engine (prefilling or decoding).

    Parameters
    ----------
    o : Operators
    r : Rates
    requests : Requests
    running : array (plans, 1) [request]

    Returns
    -------
    Steady

    Notes
    -----
    Little's law over the cycle of a request: ``running = rate x (first_token + steps x iteration)``; an iteration lasts
    a decode step plus the prefill work of the other requests that arrives meanwhile.

    References
    ----------
    1. Little 1961. 2. Agrawal et al., "Sarathi-Serve", 2024. 3. Agrawal et al., "Vidur", 2024.
    """
    steps = np.maximum(requests.output / requests.accepted, 1.0)
    decoding = running
    others = np.maximum(running - 1.0, 0.0) / np.maximum(running, 1.0)
    batch = np.minimum(running, np.maximum(requests.chunk / requests.prompt, 1.0))
    for _ in range(ROUNDS):
        flow = decoding / steps * requests.prompt
        chunk = np.minimum(requests.chunk, np.maximum(flow, requests.prompt))
        times = step_seconds(o, r, _cases(requests, decoding, chunk))
        total = times.total
        draft = total[:, :1] * (requests.draft * DRAFT_LAYERS / o.layers)
        decode, mixed = total[:, :1] + draft, total[:, 1:] + draft
        work = (mixed - decode) * requests.prompt / chunk / o.pipeline
        own = mixed * np.maximum(requests.prompt / requests.chunk, 1.0)
        own = np.where(chunk > requests.prompt, decode + (mixed - decode) * requests.prompt / chunk, own)
        spread = (1.0 - requests.together) * decoding * others
        iteration = decode + work / steps * (spread + requests.together * 0.5 * (running - batch))
        decoding = running / (1.0 + own / (steps * iteration))
    wait = burst_wait_s(requests, running, work)
    rate = running / (own + wait + steps * iteration)
    return Steady(
        requests_per_s=rate,
        iteration_s=iteration,
        prefill_s=work,
        first_token_s=own + wait,
        decode_s=decode,
        decoding=decoding,
        times=times,
    )


def burst_wait_s(requests: Requests, running: Floats, work: Floats) -> Floats:
    """Mean wait for the prefill of those that arrived in the same burst [s].

    Parameters
    ----------
    requests : Requests
    running : array (plans, 1) [request]
    work : array (plans, 1) [s]
        Prefill work of one request.

    Returns
    -------
    array (plans, 1) [s]

    Notes
    -----
    A burst of ``n`` prompts is worked off in batches of as many as an iteration holds; all prompts of a batch get their
    first token together, so the mean is half of all batches plus half of one, less the request's own prefill.

    References
    ----------
    1. Agrawal et al., "Sarathi-Serve", 2024 (prefill batches under a token budget).
    """
    batch = np.minimum(running, np.maximum(requests.chunk / requests.prompt, 1.0))
    return np.asarray(requests.together * (0.5 * (running + batch) - 1.0) * work)


def static_batch_s(o: Operators, r: Rates, requests: Requests, batch: Floats, waves: Floats) -> tuple[Floats, Floats]:
    """Latency of a batch that starts together and ends together, and the time to its first token [s].

    Parameters
    ----------
    o, r : Operators, Rates
    requests : Requests
    batch : array (plans, 1) [sequence]
        Sequences at a time.
    waves : array (plans, 1)
        How often such a batch must run for the whole job (more than 1 where the cache cannot hold it).

    Returns
    -------
    tuple of arrays (plans, 1) [s]

    References
    ----------
    1. Pope et al. 2022 (prefill and decode phases).
    """
    steps = np.maximum(requests.output / requests.accepted, 1.0)
    total = batch * requests.prompt
    chunk = np.minimum(np.maximum(requests.chunk, requests.prompt), total)
    zero = np.zeros_like(batch)
    decode = step_seconds(
        o, r, Iteration(
            sequences=batch, tokens_per_sequence=1.0 + requests.draft,
            context=requests.cached + requests.prompt + requests.output * 0.5, prefill_tokens=zero,
            prompt=requests.prompt,
        ),
    ).total  # fmt: skip
    prefill = step_seconds(
        o, r, Iteration(
            sequences=zero, tokens_per_sequence=1.0 + requests.draft, context=requests.prompt,
            prefill_tokens=chunk, prompt=requests.prompt + 2.0 * requests.cached,
        ),
    ).total  # fmt: skip
    first = prefill * (total / chunk - 1.0) / o.pipeline + prefill
    return waves * (first + (steps - 1.0) * decode), first
