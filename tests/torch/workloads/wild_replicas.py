#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""One process whose model is copied to two devices for each batch.

DataParallel: what is copied and added up goes through NCCL, both ranks of it
in this thread, in groups. Prints losses and a digest.
"""

from torch.nn import DataParallel

from wild_common import Training, turns


def main():
    training = Training("replicas")
    training.model = DataParallel(training.model, device_ids=[0, 1])
    for _ in turns(4):
        training.step()
    training.tell()


if __name__ == "__main__":
    main()
