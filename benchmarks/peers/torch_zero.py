# SPDX-FileCopyrightText: 2026 The kzero authors
# SPDX-License-Identifier: BSD-3-Clause
"""The step of PyTorch that S1 is compared with: DistributedDataParallel and
ZeroRedundancyOptimizer with AdamW over gloo, float32 parameters and gradients,
one thread a rank.

Usage: torch_zero.py RANKS

Prints "ready torch VERSION" or "missing torch", then answers each line of its
input:
  set-up <elements> <parameters> <clip norm, 0 for none>
      makes a model and takes two steps: "ready"
  round
      takes a step: its seconds, those of zeroing the gradients, the backward
      pass with DDP's reductions less the same pass without them, clipping, and
      the optimizer's step, which sends the parameters. The slowest rank counts.
"""
import multiprocessing
import os
import sys
import tempfile
import time

try:
    import torch
except ImportError:
    print("missing torch", flush=True)
    sys.exit()
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
    def __init__(self, elements, parameters, clip):
        self.clip = clip
        self.model = DistributedDataParallel(
            Model(elements, parameters), gradient_as_bucket_view=True)
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
        if self.clip > 0:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        return time.perf_counter() - begin

    def measure(self):
        alone = self.backward_alone()
        dist.barrier()
        return self.run() - alone


def rank_of_job(rank, ranks, store, pipe):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank,
                            world_size=ranks)
    step = None
    pipe.send("ready")
    while request := pipe.recv():
        if request == "round":
            pipe.send(step.measure())
            continue
        step = None  # gives its memory back first
        step = Step(*request)
        step.run()
        step.measure()
        pipe.send("ready")
    dist.destroy_process_group()


def ask_all(pipes, request):
    for pipe in pipes:
        pipe.send(request)
    return [pipe.recv() for pipe in pipes]


def answer(pipes, line):
    name, *values = line.split()
    if name == "round":
        return max(ask_all(pipes, "round"))
    elements, parameters, clip = values
    ask_all(pipes, (int(elements), int(parameters), float(clip)))
    return "ready"


def main():
    ranks = int(sys.argv[1])
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        pipes, processes = [], []
        for rank in range(ranks):
            mine, theirs = context.Pipe()
            process = context.Process(
                target=rank_of_job, daemon=True,
                args=(rank, ranks, os.path.join(folder, "store"), theirs))
            process.start()
            theirs.close()
            pipes.append(mine)
            processes.append(process)
        for pipe in pipes:
            pipe.recv()
        print("ready torch", torch.__version__.split("+")[0], flush=True)
        for line in sys.stdin:
            print(answer(pipes, line), flush=True)
        for pipe in pipes:
            pipe.send(None)
        for process in processes:
            process.join(30)


if __name__ == "__main__":
    main()
