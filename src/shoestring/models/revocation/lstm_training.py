"""Training of RevPred and of Tributary's predictor, with torch: an independent network for each market."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shoestring.errors import need
from shoestring.models.revocation.arrays import Array
from shoestring.models.revocation.examples import Examples
from shoestring.models.revocation.lstm import LAYERS, MarketNet, RevPred, Tributary, records
from shoestring.models.revocation.price_arrays import Flags, Floats


@dataclass(frozen=True)
class Effort:
    """Size of a network and length of its training. The paper states neither."""

    width: int = 16
    epochs: int = 10
    batch: int = 128
    learning_rate: float = 5e-3


USUAL = Effort()


def fit_revpred(examples: Examples, *, seed: int = 0, effort: Effort = USUAL) -> RevPred:
    """With class weights phi_- for the revoked and phi_+ for the others; `equation` can be changed afterwards."""
    return RevPred(nets=_nets(examples, seed, effort, apart=True))


def fit_tributary(examples: Examples, *, seed: int = 0, effort: Effort = USUAL) -> Tributary:
    return Tributary(nets=_nets(examples, seed, effort, apart=False))


def _nets(examples: Examples, seed: int, effort: Effort, *, apart: bool) -> dict[str, MarketNet]:
    nets = {}
    for market in np.unique(examples.queries.market):
        mine = np.flatnonzero(examples.queries.market == market)
        raw = records(examples.queries.pick(mine))
        nets[str(examples.queries.markets.offers[market])] = _net(
            raw, examples.revoked[mine], seed, effort, apart=apart
        )
    return nets


def _net(raw: Floats, revoked: Flags, seed: int, effort: Effort, *, apart: bool) -> MarketNet:
    torch = need("torch", extra="torch")
    rows = raw.reshape(-1, raw.shape[2])
    mean, scale = rows.mean(axis=0), np.maximum(rows.std(axis=0), 1e-6)
    share = float(revoked.mean())
    inputs = torch.tensor((raw - mean) / scale, dtype=torch.float32)
    answers = torch.tensor(revoked, dtype=torch.float32)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = _network(torch, effort.width, apart=apart)
        weights = torch.where(answers > 0, 1.0 - share, share) if apart else torch.ones_like(answers)
        _train(torch, net, inputs, answers, weights, effort)
    return MarketNet(
        mean=tuple(mean.tolist()), scale=tuple(scale.tolist()), revoked_share=share, weights=_exported(net)
    )


def _network(torch: Any, width: int, *, apart: bool) -> Any:
    nn = torch.nn
    parts = {"lstm": nn.LSTM(6 if apart else 7, width, num_layers=LAYERS, batch_first=True)}
    if apart:
        parts["dense"] = nn.ModuleList(nn.Linear(7 if layer == 0 else width, width) for layer in range(LAYERS))
    parts["last"] = nn.Linear(2 * width if apart else width, 1)
    return nn.ModuleDict(parts)


def logits(torch: Any, net: Any, inputs: Any) -> Any:
    """What `revpred_output` or `tributary_output` computes, before the sigmoid."""
    if "dense" not in net:
        return net["last"](net["lstm"](inputs)[0][:, -1])[:, 0]
    past, present = net["lstm"](inputs[:, :-1, :6])[0][:, -1], inputs[:, -1]
    for layer in net["dense"]:
        present = torch.relu(layer(present))
    return net["last"](torch.cat((past, present), dim=1))[:, 0]


def _train(torch: Any, net: Any, inputs: Any, answers: Any, weights: Any, effort: Effort) -> None:
    adam = torch.optim.Adam(net.parameters(), lr=effort.learning_rate)
    for _ in range(effort.epochs):
        for some in torch.randperm(len(inputs)).split(effort.batch):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                logits(torch, net, inputs[some]), answers[some], weight=weights[some], reduction="sum"
            ) / weights[some].sum().clamp_min(1e-6)
            adam.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            adam.step()


def _exported(net: Any) -> dict[str, Array]:
    state = {name: value.detach().numpy() for name, value in net.state_dict().items()}
    for layer in range(LAYERS):
        state[f"lstm.bias_l{layer}"] = state.pop(f"lstm.bias_ih_l{layer}") + state.pop(f"lstm.bias_hh_l{layer}")
    return {name: Array.of(value, "<f4") for name, value in state.items()}
