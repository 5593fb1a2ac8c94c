# SPDX-License-Identifier: LGPL-2.1-or-later
"""On PYTHONPATH of the scripts that the tests start; they do not import it.

PyTorch's autograd thread drops its last Python objects some time after
backward() has returned. If the interpreter ends in that moment the process
aborts ("terminate called without an active exception"), on any device; the
simulated one, which never keeps the host waiting, makes it likely. This waits
for that thread before the interpreter begins to end.
"""

import atexit
import time

atexit.register(time.sleep, 0.1)
