// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Everything that parses what others may have written, for libFuzzer
// (https://llvm.org/docs/LibFuzzer.html) and for the replay of its finds. The
// first byte of an input says which parser the rest is for.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <kzero/error.hpp>
#include <kzero/plan.hpp>
#include <limits>
#include <new>
#include <string>
#include <string_view>

#include "io/checkpoint_file.hpp"
#include "io/checksum.hpp"
#include "io/checksum_text.hpp"
#include "io/layout_json.hpp"
#include "io/link_name.hpp"
#include "io/manifest.hpp"
#include "tools/checkpoint_tensors.hpp"
#include "tools/hdf5_comparison.hpp"
#include "tools/npy.hpp"
#include "tools/npz.hpp"
#include "tools/planned_model.hpp"
#include "tools/safetensors.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define KZERO_HOOKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KZERO_HOOKS 1
#endif
#endif
#if defined(KZERO_HOOKS)
// Of the run-time library, whose header does not come with every compiler.
extern "C" int __sanitizer_install_malloc_and_free_hooks(
    void (*malloc_hook)(const volatile void*, std::size_t),
    void (*free_hook)(const volatile void*));
#endif

namespace {

using namespace kzero;

/// What one allocation may take.
std::atomic<std::size_t> most_bytes = std::numeric_limits<std::size_t>::max();

void look_at(const volatile void*, std::size_t bytes) {
  if (bytes <= most_bytes) return;
  most_bytes = std::numeric_limits<std::size_t>::max();
  std::fprintf(stderr, "an allocation of %zu bytes\n", bytes);
  std::abort();
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

/// A file in memory.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes)
      : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
    require(descriptor_ >= 0, "memfd_create");
    require(write(descriptor_, bytes.data(), bytes.size()) ==
                static_cast<ssize_t>(bytes.size()),
            "write");
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const {
    return "/proc/self/fd/" + std::to_string(descriptor_);
  }

 private:
  int descriptor_;
};

void read_all(const tools::Tensors& tensors) {
  for (const tools::Tensor& tensor : tensors.tensors)
    tools::for_each_piece(tensor,
                          [](std::int64_t, std::span<const std::byte>) {});
}

void parse_manifest(std::string_view text) {
  detail::FileHeader anywhere;
  anywhere.file_bytes = std::numeric_limits<std::int64_t>::max();
  anywhere.manifest_place = anywhere.file_bytes;
  const detail::Manifest once(detail::read_manifest(text, anywhere));
  const detail::Manifest again(detail::read_manifest(once.text(), anywhere));
  require(once.text() == again.text(),
          "a manifest that was written is read as another one");
}

/// With right checksums.
void read_checkpoint(std::string_view manifest) {
  constexpr std::int64_t behind_header = 16384;
  detail::FileHeader header;
  header.manifest_place = detail::header_bytes + behind_header;
  header.manifest_bytes = std::ssize(manifest);
  header.file_bytes = header.manifest_place + header.manifest_bytes;
  header.manifest_sum =
      detail::checksum(0, manifest.data(), std::ssize(manifest));
  // All else are zeros, the sum of which is 0.
  const std::string zeros(static_cast<std::size_t>(behind_header), '\0');
  const MemoryFile file(detail::header_text(header) + zeros +
                        std::string(manifest));
  detail::CheckpointReader(file.path()).verify_arrays();
}

void read_names(std::string_view text) {
  require(detail::name_of_link(detail::link_name(text)) == text,
          "a name comes back as another one");
  require(detail::is_utf8(detail::link_name(text)), "a link is not UTF-8");
  static_cast<void>(detail::name_of_link(text));
}

void plan(std::string_view text) {
  tools::ModelChoices choices;
  choices.most_parameters = 1000;
  const tools::PlannedModel model = tools::parse_model(text, choices);
  static_cast<void>(
      make_plan(model.parameters, {.ranks = 7}).memory(6, std::size_t{2}));
}

/// The first two bytes are the length of the text. As it is, or made a
/// checkpoint, on disk.
void read_safetensors(std::string_view input, bool as_checkpoint) {
  if (input.size() < 2) return;
  const auto length = std::min<std::size_t>(
      static_cast<unsigned char>(input[0]) |
          static_cast<unsigned>(static_cast<unsigned char>(input[1])) << 8U,
      input.size() - 2);
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(length);
  bytes[1] = static_cast<char>(length >> 8);
  const MemoryFile file(bytes.append(input.substr(2)));
  const tools::Tensors tensors =
      tools::read_safetensors(file.path(), tools::OtherTypes::pass_over);
  if (!as_checkpoint) return read_all(tensors);
  const std::filesystem::path target =
      std::filesystem::temp_directory_path() /
      ("kzero_fuzz_" + std::to_string(getpid()) + ".h5");
  tools::write_checkpoint(target, tensors, [](std::int64_t) {});
  const detail::CheckpointReader reader(target);
  require(tools::hdf5_differences(target, reader.stored(), reader.file_header())
              .empty(),
          "HDF5 finds something else than was written");
  std::filesystem::remove(target);
}

void read_npy(std::string_view text) {
  const tools::NpyHeader header = tools::parse_npy_header(text);
  static_cast<void>(tools::type_of(header));
}

void read_npz(std::string_view bytes) {
  const MemoryFile file(bytes);
  read_all(tools::read_npz(file.path(), tools::OtherTypes::pass_over));
}

/// With the right checksum.
void read_header(std::string_view json) {
  std::string rest(1, '\n');
  rest += json;
  const std::string begin = "kzero checkpoint ";
  rest.resize(detail::header_bytes - begin.size() - 16, ' ');
  detail::read_header(begin +
                      detail::checksum_text(
                          detail::checksum(0, rest.data(), std::ssize(rest))) +
                      rest);
}

void parse(char kind, std::string_view text) {
  switch (kind) {
    case 'b':
      detail::read_header(text);
      break;
    case 'h':
      read_header(text);
      break;
    case 'm':
      parse_manifest(text);
      break;
    case 'c':
      read_checkpoint(text);
      break;
    case 'n':
      read_names(text);
      break;
    case 's':
      detail::layout_of_state(text, {});
      break;
    case 'p':
      plan(text);
      break;
    case 't':
      read_safetensors(text, false);
      break;
    case 'w':
      read_safetensors(text, true);
      break;
    case 'y':
      read_npy(text);
      break;
    case 'z':
      read_npz(text);
      break;
    default:
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
#if defined(KZERO_HOOKS)
  static const int hooks = __sanitizer_install_malloc_and_free_hooks(
      look_at, [](const volatile void*) {});
  static_cast<void>(hooks);
#else
  static_cast<void>(look_at);
#endif
  if (size == 0) return 0;
  const char kind = static_cast<char>(data[0]);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1,
                              size - 1);
  // Packed arrays are larger than their file: deflate makes 1032 bytes of one.
  const std::size_t factor = kind == 'z' ? 1100 : 64;
  most_bytes = (std::size_t{2} << 20) + factor * size;
  try {
    parse(kind, text);
  } catch (const std::bad_alloc&) {
    require(false, "no memory");
  } catch (const std::exception&) {
    // What is wrong is refused.
  }
  most_bytes = std::numeric_limits<std::size_t>::max();
  return 0;
}
