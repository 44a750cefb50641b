# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause

"""torch.optim.AdamW on one float32 tensor, round by round.

Usage: torch_adamw.py ELEMENTS THREADS

Prints "ready torch VERSION KINDS" or "missing torch", then for each line on
standard input the seconds of one step: "fused", "foreach" or "plain", with
"+clip" behind it after clip_grad_norm_. A kind that this torch has not is
answered by "missing". With one thread the seconds are the processor's.
"""

import sys
import time


def main():
    elements, threads = int(sys.argv[1]), int(sys.argv[2])
    try:
        import torch
    except ImportError:
        print("missing torch", flush=True)
        return
    torch.set_num_threads(threads)
    clock = time.thread_time if threads == 1 else time.perf_counter
    parameter = torch.nn.Parameter(torch.rand(elements) - 0.5)
    gradient = torch.rand(elements) - 0.5
    parameter.grad = gradient
    optimizers = {}

    def optimizer_of(kind):
        options = {} if kind == "plain" else {kind: True}
        if kind == "plain" and "foreach" in torch.optim.AdamW.__init__.__code__.co_varnames:
            options = {"foreach": False}
        return torch.optim.AdamW([parameter], lr=1e-3, weight_decay=1e-2, **options)

    def step(kind):
        name, _, clip = kind.partition("+")
        # One at a time: each has moments of its own.
        if name not in optimizers:
            optimizers.clear()
            optimizers[name] = optimizer_of(name)
            optimizers[name].step()
        begin = clock()
        if clip:
            torch.nn.utils.clip_grad_norm_([parameter], 1.0)
        optimizers[name].step()
        return clock() - begin

    kinds = []
    for kind in ("fused", "foreach", "plain"):
        try:
            step(kind)
            kinds.append(kind)
        except (RuntimeError, TypeError, ValueError):
            optimizers.clear()
    print("ready torch", torch.__version__, ",".join(kinds), flush=True)
    for line in sys.stdin:
        kind = line.strip()
        if kind.partition("+")[0] in kinds:
            print(f"{step(kind):.9f}", flush=True)
        else:
            print("missing", flush=True)


main()
