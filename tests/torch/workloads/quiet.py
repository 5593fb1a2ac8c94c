# SPDX-License-Identifier: LGPL-2.1-or-later
"""PyTorch without CUDA: training on the CPU, with data from workers."""

import subprocess
import threading

import torch


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((8,), float(index)), torch.tensor([index % 2.0])


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    for way in "fork", "spawn":
        loader = torch.utils.data.DataLoader(
            Squares(), batch_size=16, num_workers=2,
            multiprocessing_context=way,
        )
        for inputs, wanted in loader:
            loss = (model(inputs) - wanted).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        print(way, loss.item())
    subprocess.run(["sh", "-c", "echo child"], check=True)
    print(threading.active_count())


if __name__ == "__main__":
    main()
