"""Steady states of a replica: closed loop, offline and static batch, as one model of iterations.

Shapes are ``(plans, 1)`` throughout.
"""

from dataclasses import dataclass

import numpy as np

from app.engine.serving.operators import Floats
from app.engine.serving.step import Costs, Lengths, StepTime, step_seconds

# a draft token costs about a layer and the head, against all layers of a verification step; the multi-token-prediction
# layer of DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 2.2
DRAFT_LAYERS = 2.0
# rounds of the fixed point between batch and iteration time; it contracts by the prefill share of the time each round
ROUNDS = 2


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
    apart : array [1]
        1 where prompts run in iterations of their own and decoding stops for them, else 0.
    """

    prompt: Floats
    cached: Floats
    output: Floats
    chunk: Floats
    draft: Floats
    accepted: Floats
    together: Floats
    apart: Floats


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


def lengths_of(requests: Requests) -> Lengths:
    """Lengths as the iteration's costs see them: half of the output is in the cache on average.

    Parameters
    ----------
    requests : Requests

    Returns
    -------
    Lengths

    References
    ----------
    1. Agrawal et al., "Vidur", 2024.
    """
    return Lengths(
        context=requests.cached + requests.prompt + requests.output * 0.5,
        prompt=requests.prompt + 2.0 * requests.cached,
        tokens_per_sequence=1.0 + requests.draft,
    )


def steady_state(c: Costs, requests: Requests, running: Floats) -> Steady:
    """Steady state with a given number of requests in the engine (prefilling or decoding).

    Parameters
    ----------
    c : Costs
    requests : Requests
    running : array (plans, 1) [request]

    Returns
    -------
    Steady

    Notes
    -----
    Little's law over the cycle of a request: ``running = rate x (first_token + steps x iteration)``; an iteration lasts
    a decode step plus the prefill work of the other requests that arrives meanwhile. A sequence that decodes meets
    itself and its share of the others, so that one alone decodes alone. A prompt passes the pipeline stages one after
    the other: its latency is that of all of them, its work that of one.

    References
    ----------
    1. Little 1961. 2. Agrawal et al., "Sarathi-Serve", 2024. 3. Agrawal et al., "Vidur", 2024.
    """
    steps = np.maximum(requests.output / requests.accepted, 1.0)
    decoding = running
    others = np.maximum(running - 1.0, 0.0) / np.maximum(running, 1.0)
    batch = np.minimum(running, np.maximum(requests.chunk / requests.prompt, 1.0))
    beside = 1.0 - requests.apart
    for _ in range(ROUNDS):
        flow = decoding / steps * requests.prompt
        chunk = np.minimum(requests.chunk, np.maximum(flow, requests.prompt))
        seen = 1.0 + decoding * others
        sequences = np.concatenate([seen, seen * beside], axis=1)
        times = step_seconds(c, sequences, np.concatenate([decoding * 0.0, chunk], axis=1))
        total = times.total
        draft = total[:, :1] * (requests.draft * DRAFT_LAYERS / c.layers)
        decode, mixed = total[:, :1] + draft, total[:, 1:] + draft * beside
        work = (mixed - decode * beside) * requests.prompt / chunk
        own = decode * beside * np.maximum(requests.prompt / requests.chunk, 1.0) + work * c.pipeline
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


def static_batch_s(c: Costs, requests: Requests, batch: Floats, waves: Floats) -> tuple[Floats, Floats]:
    """Latency of a batch that starts together and ends together, and the time to its first token [s].

    Parameters
    ----------
    c : Costs
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
    both = step_seconds(c, np.concatenate([batch, zero], axis=1), np.concatenate([zero, chunk], axis=1)).total
    decode, prefill = both[:, :1], both[:, 1:]
    first = prefill * (total / chunk + (c.pipeline - 1.0) / c.pipeline)
    return waves * (first + (steps - 1.0) * decode), first
