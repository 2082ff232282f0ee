"""RevPred and Tributary's predictor: recurrent networks, one for each market. Trained with torch, evaluated without it.

RevPred reads the 59 past records with three LSTM layers and the present one, with the maximum price, with three dense
layers. Tributary, as the SpotTune paper describes it, has one LSTM for everything, the maximum beside every record.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import expit

from shoestring.errors import DataError
from shoestring.kernel.types import Fact
from shoestring.models.revocation.arrays import Array
from shoestring.models.revocation.features import minute_records
from shoestring.models.revocation.model import Queries, certain_above_maximum, stretched
from shoestring.models.revocation.price_arrays import Floats, Ints

LAYERS = 3
CHUNK = 512

Equation = Literal["corrected", "printed"]


class MarketNet(Fact, frozen=True, kw_only=True):
    """The network of one market. `weights` have torch's names; the two biases of an LSTM are summed."""

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    """Of the six features and the maximum, over the training examples."""
    revoked_share: float
    """phi_+ of the training set."""
    weights: dict[str, Array]


class RevPred(Fact, frozen=True, kw_only=True, tag="revpred"):
    """SpotTune's predictor, trained with class weights; Eq. 3 (`unweighted`) turns its output into a chance."""

    equation: Equation = "corrected"
    nets: dict[str, MarketNet]

    def chance(self, queries: Queries, /) -> Floats:
        an_hour = np.empty(len(queries))
        for mine, net in _by_market(queries, self.nets):
            share = net.revoked_share
            an_hour[mine] = unweighted(revpred_output(net, inputs(net, queries.pick(mine))), share, self.equation)
        return certain_above_maximum(queries, stretched(an_hour, queries.within_s))


class Tributary(Fact, frozen=True, kw_only=True, tag="tributary"):
    """Tributary's predictor: no class weights, so its output is a chance."""

    nets: dict[str, MarketNet]

    def chance(self, queries: Queries, /) -> Floats:
        an_hour = np.empty(len(queries))
        for mine, net in _by_market(queries, self.nets):
            an_hour[mine] = tributary_output(net, inputs(net, queries.pick(mine)))
        return certain_above_maximum(queries, stretched(an_hour, queries.within_s))


def unweighted(output: Floats, revoked_share: float, equation: Equation) -> Floats:
    """odds(P) = odds(P_hat) * phi_+ / phi_-: the chance of a net trained with class weights.  Paper: SpotTune Eq. 3.

    Differs from the paper: with the weights it names (phi_- for the revoked, phi_+ for the others) the net's odds are
    phi_-/phi_+ times too high. They are to be multiplied by phi_+/phi_-; the printed form multiplies by phi_-/phi_+.
    """
    P_hat, phi_plus = np.clip(output, 1e-7, 1 - 1e-7), min(max(revoked_share, 1e-4), 1 - 1e-4)
    phi_minus = 1.0 - phi_plus
    factor = phi_plus / phi_minus if equation == "corrected" else phi_minus / phi_plus
    odds: Floats = P_hat / (1.0 - P_hat) * factor
    return odds / (1.0 + odds)


def inputs(net: MarketNet, queries: Queries) -> Floats:
    """Sixty records, each with the maximum, standardized: (queries, 60, 7)."""
    standard: Floats = (records(queries) - np.array(net.mean)) / np.array(net.scale)
    return standard


def records(queries: Queries) -> Floats:
    six = minute_records(queries.markets, queries.market, queries.at)
    maximum = np.broadcast_to(queries.max_usd_per_hour[:, None, None], (*six.shape[:2], 1))
    return np.concatenate((six, maximum), axis=2)


def revpred_output(net: MarketNet, inputs: Floats) -> Floats:
    """The 59 past records (without the maximum) and the present one have separate layers, concatenated at the end."""
    weights = {name: array.floats() for name, array in net.weights.items()}
    past, present = _lstm(weights, inputs[:, :-1, :6]), inputs[:, -1, :]
    for layer in range(LAYERS):
        present = np.maximum(present @ weights[f"dense.{layer}.weight"].T + weights[f"dense.{layer}.bias"], 0.0)
    return _last(weights, np.concatenate((past, present), axis=1))


def tributary_output(net: MarketNet, inputs: Floats) -> Floats:
    weights = {name: array.floats() for name, array in net.weights.items()}
    return _last(weights, _lstm(weights, inputs))


def _last(weights: dict[str, Floats], embedded: Floats) -> Floats:
    chances: Floats = expit(embedded @ weights["last.weight"].T + weights["last.bias"])[:, 0]
    return chances


def _lstm(weights: dict[str, Floats], sequence: Floats) -> Floats:
    """The last state of the last layer. Gates are in torch's order: input, forget, cell, output."""
    for layer in range(LAYERS):
        into, back = weights[f"lstm.weight_ih_l{layer}"].T, weights[f"lstm.weight_hh_l{layer}"].T
        driven = sequence @ into + weights[f"lstm.bias_l{layer}"]
        hidden = cell = np.zeros((len(sequence), back.shape[0]))
        states = []
        for step in range(sequence.shape[1]):
            i, f, g, o = np.split(driven[:, step] + hidden @ back, 4, axis=1)
            cell = expit(f) * cell + expit(i) * np.tanh(g)
            hidden = expit(o) * np.tanh(cell)
            states.append(hidden)
        sequence = np.stack(states, axis=1)
    return hidden


def _by_market(queries: Queries, nets: dict[str, MarketNet]) -> list[tuple[Ints, MarketNet]]:
    found: list[tuple[Ints, MarketNet]] = []
    for market in np.unique(queries.market):
        offer = str(queries.markets.offers[market])
        if offer not in nets:
            raise DataError(f"this model was not trained on {offer}", hint="train it again on prices that have it")
        mine = np.flatnonzero(queries.market == market)
        found += [(mine[begin : begin + CHUNK], nets[offer]) for begin in range(0, len(mine), CHUNK)]
    return found
