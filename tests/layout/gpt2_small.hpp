// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The tensors of GPT-2 small: a model whose parameters differ as real ones do.
#pragma once

#include <kzero/parameter_set.hpp>
#include <string>

namespace kzero::test {

enum class Embeddings { with, without };

/// 148 parameters; without the two embeddings 146.
inline ParameterSet gpt2_small(Embeddings embeddings = Embeddings::with) {
  ParameterSet set;
  if (embeddings == Embeddings::with) {
    set.add("wte", {50257, 768});
    set.add("wpe", {1024, 768});
  }
  for (int block = 0; block < 12; ++block) {
    const std::string h = "h." + std::to_string(block);
    const auto affine = [&](const char* name, std::int64_t in,
                            std::int64_t out) {
      set.add(h + name + ".weight", {in, out});
      set.add(h + name + ".bias", {out});
    };
    const auto norm = [&](const char* name) {
      set.add(h + name + ".weight", {768});
      set.add(h + name + ".bias", {768});
    };
    norm(".ln_1");
    affine(".attn.c_attn", 768, 2304);
    affine(".attn.c_proj", 768, 768);
    norm(".ln_2");
    affine(".mlp.c_fc", 768, 3072);
    affine(".mlp.c_proj", 3072, 768);
  }
  set.add("ln_f.weight", {768});
  set.add("ln_f.bias", {768});
  return set;
}

}  // namespace kzero::test
