# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause
"""The step of PyTorch that S1 is compared with: DistributedDataParallel and
ZeroRedundancyOptimizer with AdamW over gloo, float32 parameters and gradients,
one thread a rank.

Says "ready <name>" when its processes have taken a step, then answers each line
of its input with the seconds of one more step: zeroing the gradients, the
backward pass with DDP's reductions less the same pass without them, clipping,
and the optimizer's step, which sends the parameters. The slowest rank counts.
"""
import argparse
import multiprocessing
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


class GivenGradients(torch.autograd.Function):
    """A loss whose gradients are given: its backward pass computes nothing."""

    @staticmethod
    def forward(ctx, *parameters):
        ctx.shapes = [parameter.shape for parameter in parameters]
        return parameters[0].new_zeros(())

    @staticmethod
    def backward(ctx, *_):
        slope = torch.full((1,), 1e-3)
        return tuple(slope.expand(shape) for shape in ctx.shapes)


class Model(torch.nn.Module):
    def __init__(self, elements, parameters):
        super().__init__()
        self.layers = torch.nn.ParameterList(
            torch.nn.Parameter(torch.zeros(elements // parameters))
            for _ in range(parameters))

    def forward(self):
        return GivenGradients.apply(*self.layers)


def adamw_options():
    # Fused on the CPU since PyTorch 2.4.
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    return {"fused": True} if version >= (2, 4) else {}


class Step:
    def __init__(self, arguments):
        self.clip = arguments.clip
        self.model = DistributedDataParallel(
            Model(arguments.elements, arguments.parameters),
            gradient_as_bucket_view=True)
        self.optimizer = ZeroRedundancyOptimizer(
            self.model.parameters(), torch.optim.AdamW,
            parameters_as_bucket_view=True, lr=1e-3, **adamw_options())

    def backward_alone(self):
        """Seconds of the backward pass without reductions."""
        with self.model.no_sync():
            begin = time.perf_counter()
            self.model().backward()
            return time.perf_counter() - begin

    def run(self):
        begin = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=False)
        self.model().backward()
        if self.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        return time.perf_counter() - begin

    def measure(self):
        alone = self.backward_alone()
        dist.barrier()
        return self.run() - alone


def rank_of_job(rank, arguments, store, pipe):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank,
                            world_size=arguments.ranks)
    step = Step(arguments)
    step.run()
    step.measure()
    pipe.send("ready")
    while pipe.recv():
        pipe.send(step.measure())
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--elements", type=int, default=1 << 20)
    parser.add_argument("--parameters", type=int, default=32)
    parser.add_argument("--clip", type=float)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        pipes, processes = [], []
        for rank in range(arguments.ranks):
            mine, theirs = context.Pipe()
            process = context.Process(
                target=rank_of_job, daemon=True,
                args=(rank, arguments, os.path.join(folder, "store"), theirs))
            process.start()
            theirs.close()
            pipes.append(mine)
            processes.append(process)
        for pipe in pipes:
            pipe.recv()
        print("ready PyTorch", torch.__version__.split("+")[0], flush=True)
        for _ in sys.stdin:
            for pipe in pipes:
                pipe.send(True)
            print(max(pipe.recv() for pipe in pipes), flush=True)
        for pipe in pipes:
            pipe.send(False)
        for process in processes:
            process.join(30)


if __name__ == "__main__":
    main()
