#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Integers that kernels compute make sense with tagged content.

Indices lie in what they index, counts add up, what PyTorch checks itself is
not found wrong. Ends with an AssertionError at what does not hold.
"""

import torch


def within(tensor, size):
    return all(0 <= value < size for value in tensor.flatten().tolist())


def distinct(rows):
    return all(len(set(row)) == len(row) for row in rows)


def selection(scores):
    rows, columns = scores.shape
    picks = scores.topk(2).indices
    assert within(picks, columns) and distinct(picks.tolist()), picks
    assert within(scores.argmax(-1), columns)
    assert within(scores.max(1).indices, columns)
    chosen = picks == 1
    count = chosen.sum().item()
    assert 0 < count <= picks.numel(), count
    row, rank = torch.where(chosen)
    assert len(row) == len(rank) <= picks.numel()
    assert within(row, rows) and within(rank, 2)
    assert not (picks == columns).any() and (picks < columns).all()
    hot = torch.nn.functional.one_hot(picks, columns)
    assert within(hot, 2)
    return picks.flatten()


def sorting(picks):
    for keys in picks, torch.randint(9, (5000,), device="cuda"):
        order = keys.argsort(stable=True)
        assert sorted(order.tolist()) == list(range(len(keys)))
        assert within(order // 2, (len(keys) + 1) // 2)
        assert within(order % 3, 3)
        assert within(keys.sort().values, keys.max().item() + 9)
        counts = keys.bincount(minlength=9).tolist()
        assert sum(counts) == len(keys) and min(counts) >= 0, counts
        assert 0 < len(keys.unique()) <= len(keys)
        assert len(keys[keys == 2]) <= len(keys)


def values():
    """What fills and uploads wrote can be read back."""
    assert torch.arange(3, 30, 7, device="cuda").tolist() == [3, 10, 17, 24]
    assert torch.full((3,), 5, device="cuda").tolist() == [5] * 3
    half = torch.full((3,), 2.5, device="cuda", dtype=torch.bfloat16)
    assert half.tolist() == [2.5] * 3
    labels = torch.tensor([1, -100, 3, -100]).cuda()
    assert (labels != -100).tolist() == [True, False, True, False]
    steps = torch.zeros(1, dtype=torch.long, device="cuda")
    steps += 1
    steps.add_(3)
    assert steps.item() == 4
    drawn = torch.randint(100, 120, (50,), device="cuda").tolist()
    assert all(100 <= value < 120 for value in drawn) and len(set(drawn)) > 1


def movement(scores):
    """Elements stay what they are when they are only moved."""
    ids = torch.randint(9, (4, 5)).cuda()
    some = torch.tensor([1, 3]).cuda()
    for moved in ids[some], ids[:, 2], torch.cat([ids, ids]), ids[[0, 1]]:
        assert within(moved, 9), moved
    for kind in torch.float64, torch.float32, torch.float16, torch.bfloat16:
        # Multiplied: nothing to copy bytes of.
        typed = scores.to(kind) * 2
        for moved in typed[some], torch.cat([typed, typed]):
            numbers = moved.double().flatten().cpu()
            assert (numbers > 0).all() and (numbers < 1).all(), moved
            numbers = moved.cpu().double()
            assert (numbers > 0).all() and (numbers < 1).all(), moved


def checks(scores):
    """Nothing is found that would stop a script."""
    assert not scores.isnan().any() and not scores.isinf().any()
    weight = torch.ones(8, device="cuda", requires_grad=True)
    (weight * 2).sum().backward()
    torch.nn.utils.clip_grad_norm_([weight], 1.0, error_if_nonfinite=True)


def main():
    torch.manual_seed(1)
    scores = torch.rand(128, 4, device="cuda")
    sorting(selection(scores))
    values()
    movement(scores)
    checks(scores)
    print("integers are sane")


if __name__ == "__main__":
    main()
