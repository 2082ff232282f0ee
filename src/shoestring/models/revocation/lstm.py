"""RevPred and Tributary's predictor: recurrent networks, one for each market. Trained by torch, asked without it.

RevPred reads the 59 past records by three LSTM layers and the present one, with the maximum price, by three dense
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
from shoestring.models.revocation.model import Questions, certain_above_maximum, stretched
from shoestring.models.revocation.price_arrays import Floats, Ints

LAYERS = 3
CHUNK = 512

Equation = Literal["corrected", "printed"]


class MarketNet(Fact, frozen=True, kw_only=True):
    """The network of one market. `weights` go by torch's names; the two biases of an LSTM are summed up."""

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    """Of the six figures and the maximum, over the training examples."""
    revoked_share: float
    """phi_+ of the training set."""
    weights: dict[str, Array]


class RevPred(Fact, frozen=True, kw_only=True, tag="revpred"):
    """SpotTune's predictor, trained with class weights, whose output is turned into a chance by Eq. 3."""

    equation: Equation = "corrected"
    nets: dict[str, MarketNet]

    def chance(self, asked: Questions, /) -> Floats:
        an_hour = np.empty(len(asked))
        for mine, net in _by_market(asked, self.nets):
            share = net.revoked_share
            an_hour[mine] = unweighted(revpred_output(net, inputs(net, asked.pick(mine))), share, self.equation)
        return certain_above_maximum(asked, stretched(an_hour, asked.within_s))


class Tributary(Fact, frozen=True, kw_only=True, tag="tributary"):
    """Tributary's predictor: no class weights, so that its output is a chance as it is."""

    nets: dict[str, MarketNet]

    def chance(self, asked: Questions, /) -> Floats:
        an_hour = np.empty(len(asked))
        for mine, net in _by_market(asked, self.nets):
            an_hour[mine] = tributary_output(net, inputs(net, asked.pick(mine)))
        return certain_above_maximum(asked, stretched(an_hour, asked.within_s))


def unweighted(output: Floats, revoked_share: float, equation: Equation) -> Floats:
    """The chance behind the output of a net that was trained with class weights.  Paper: SpotTune Eq. 3.

    Differs from the paper: with the weights it names (phi_- for the revoked, phi_+ for the others) the net's odds are
    phi_-/phi_+ times too high. They are to be multiplied by phi_+/phi_-; the printed form multiplies by phi_-/phi_+.
    """
    P_hat, phi_plus = np.clip(output, 1e-7, 1 - 1e-7), min(max(revoked_share, 1e-4), 1 - 1e-4)
    phi_minus = 1.0 - phi_plus
    factor = phi_plus / phi_minus if equation == "corrected" else phi_minus / phi_plus
    odds: Floats = P_hat / (1.0 - P_hat) * factor
    return odds / (1.0 + odds)


def inputs(net: MarketNet, asked: Questions) -> Floats:
    """Sixty records with the maximum beside each, in standard units: (questions, 60, 7)."""
    standard: Floats = (records(asked) - np.array(net.mean)) / np.array(net.scale)
    return standard


def records(asked: Questions) -> Floats:
    six = minute_records(asked.markets, asked.market, asked.at)
    maximum = np.broadcast_to(asked.max_usd_per_hour[:, None, None], (*six.shape[:2], 1))
    return np.concatenate((six, maximum), axis=2)


def revpred_output(net: MarketNet, told: Floats) -> Floats:
    """The 59 past records (without the maximum) and the present one go separate ways and meet at the end."""
    weights = {name: array.floats() for name, array in net.weights.items()}
    past, present = _lstm(weights, told[:, :-1, :6]), told[:, -1, :]
    for layer in range(LAYERS):
        present = np.maximum(present @ weights[f"dense.{layer}.weight"].T + weights[f"dense.{layer}.bias"], 0.0)
    return _last(weights, np.concatenate((past, present), axis=1))


def tributary_output(net: MarketNet, told: Floats) -> Floats:
    weights = {name: array.floats() for name, array in net.weights.items()}
    return _last(weights, _lstm(weights, told))


def _last(weights: dict[str, Floats], embedded: Floats) -> Floats:
    chances: Floats = expit(embedded @ weights["last.weight"].T + weights["last.bias"])[:, 0]
    return chances


def _lstm(weights: dict[str, Floats], sequence: Floats) -> Floats:
    """The last state of the last layer. Gates stand in torch's order: input, forget, cell, output."""
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


def _by_market(asked: Questions, nets: dict[str, MarketNet]) -> list[tuple[Ints, MarketNet]]:
    found: list[tuple[Ints, MarketNet]] = []
    for market in np.unique(asked.market):
        offer = str(asked.markets.offers[market])
        if offer not in nets:
            raise DataError(f"this model was not trained on {offer}", hint="train it again on prices that have it")
        mine = np.flatnonzero(asked.market == market)
        found += [(mine[begin : begin + CHUNK], nets[offer]) for begin in range(0, len(mine), CHUNK)]
    return found
