# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause

"""DeepSpeedCPUAdam (AdamW) on one float32 tensor, round by round.

Usage: deepspeed_adam.py ELEMENTS THREADS

Speaks as torch_adamw.py does; its only kind is "fused", with "+clip" behind it
after clip_grad_norm_. It is compiled when it is first used.
"""

import os
import sys
import time


def main():
    elements, threads = int(sys.argv[1]), int(sys.argv[2])
    os.environ["OMP_NUM_THREADS"] = str(threads)
    # What it prints is no answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        import deepspeed
        import torch
        from deepspeed.ops.adam import DeepSpeedCPUAdam

        torch.set_num_threads(threads)
        parameter = torch.nn.Parameter(torch.rand(elements) - 0.5)
        parameter.grad = torch.rand(elements) - 0.5
        optimizer = DeepSpeedCPUAdam([parameter], lr=1e-3, weight_decay=1e-2)
        optimizer.step()
    except Exception:  # whatever its compiler says
        print("missing deepspeed", file=answers, flush=True)
        return
    clock = time.thread_time if threads == 1 else time.perf_counter
    print("ready deepspeed", deepspeed.__version__, "fused", file=answers, flush=True)
    for line in sys.stdin:
        begin = clock()
        if line.strip().endswith("+clip"):
            torch.nn.utils.clip_grad_norm_([parameter], 1.0)
        optimizer.step()
        print(f"{clock() - begin:.9f}", file=answers, flush=True)


main()
