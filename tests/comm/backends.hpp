// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The backends that the tests of communicators run over, and buckets with
// known content.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <kzero/communicator.hpp>
#include <kzero/simulated_communicator.hpp>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/world.hpp"

namespace kzero::test {

/// Which ranks are made to be on one node: the first of them and those after
/// it, or every so many.
enum class Nodes { all, of_two, of_three, of_four, two_in_turn };

struct BackendCase {
  std::string name;
  CommunicatorOptions options;
  bool alone = false;  // every rank by itself
  std::optional<SimulatedLink> link = {};
  Nodes nodes = Nodes::all;
};

inline std::int64_t node_of(Nodes nodes, int rank) {
  switch (nodes) {
    case Nodes::of_two:
      return rank / 2;
    case Nodes::of_three:
      return rank / 3;
    case Nodes::of_four:
      return rank / 4;
    case Nodes::two_in_turn:
      return rank % 2;
    case Nodes::all:
      break;
  }
  return 0;
}

inline void PrintTo(const BackendCase& backend, std::ostream* out) {
  *out << backend.name;
}

inline std::vector<BackendCase> backend_cases() {
  using std::chrono::seconds;
  // Takes no time worth to speak of.
  const SimulatedLink fast{std::chrono::nanoseconds(0), 1e15};
  return {
      {"self", {Backend::self, seconds(30)}, true},
      {"mpi_alone", {Backend::mpi, seconds(30)}, true},
      {"mpi", {Backend::mpi, seconds(30)}},
      {"mpi_messages_of_1000_bytes", {Backend::mpi, seconds(30), 1000}},
      {"mpi_messages_of_7_bytes", {Backend::mpi, seconds(30), 7}},
      {"node_alone", {Backend::node, seconds(30)}, true},
      {"node", {Backend::node, seconds(30)}},
      {"simulated_alone", {Backend::self, seconds(30)}, true, fast},
      {"simulated", {Backend::mpi, seconds(30)}, false, fast},
      {"simulated_node", {Backend::node, seconds(30)}, false, fast},
      {"nodes_of_two", {Backend::node, seconds(30)}, false, {}, Nodes::of_two},
      {"nodes_of_three",
       {Backend::node, seconds(30), 1000},
       false,
       {},
       Nodes::of_three},
      {"nodes_of_four",
       {Backend::node, seconds(30)},
       false,
       {},
       Nodes::of_four},
      {"two_nodes_in_turn",
       {Backend::node, seconds(30)},
       false,
       {},
       Nodes::two_in_turn},
      {"simulated_nodes_of_two",
       {Backend::node, seconds(30)},
       false,
       fast,
       Nodes::of_two},
  };
}

inline std::shared_ptr<Communicator> make(const BackendCase& backend) {
  CommunicatorOptions options = backend.options;
  options.node = node_of(backend.nodes, world_rank());
  auto communicator = make_communicator(
      backend.alone ? MPI_COMM_SELF : MPI_COMM_WORLD, options);
  if (!backend.link) return communicator;
  return make_simulated_communicator(std::move(communicator), *backend.link);
}

/// A fixture with a communicator of every backend.
class OverBackends : public testing::TestWithParam<BackendCase> {
 protected:
  std::shared_ptr<Communicator> communicator = make(GetParam());
  const int rank = communicator->rank();
  const int size = communicator->size();
};

inline std::string backend_name(
    const testing::TestParamInfo<BackendCase>& info) {
  return info.param.name;
}

#define OVER_ALL_BACKENDS(fixture)                                          \
  INSTANTIATE_TEST_SUITE_P(Backends, fixture,                               \
                           testing::ValuesIn(kzero::test::backend_cases()), \
                           kzero::test::backend_name)

/// Shards of a bucket: offsets, and the table that refers to them.
struct Shards {
  explicit Shards(const std::vector<std::int64_t>& sizes) : offsets{0} {
    for (const std::int64_t size : sizes) {
      offsets.push_back(offsets.back() + size);
    }
  }
  ShardTable table() const { return ShardTable(offsets); }

  std::vector<std::int64_t> offsets;
};

/// Shard tables for so many ranks: equal, unequal, empty, all in one rank.
inline std::vector<Shards> shard_tables(int ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  std::vector<Shards> tables;
  for (const std::int64_t size : {0, 1, 13, 64, 257}) {
    tables.emplace_back(std::vector<std::int64_t>(count, size));
  }
  std::vector<std::int64_t> ascending;
  std::vector<std::int64_t> with_empty;
  for (int rank = 0; rank < ranks; ++rank) {
    ascending.push_back(17 * rank + 1);
    with_empty.push_back(rank % 2 == 0 ? 0 : 101);
  }
  tables.emplace_back(ascending);
  tables.emplace_back(std::vector(ascending.rbegin(), ascending.rend()));
  tables.emplace_back(with_empty);
  for (const std::size_t rank : {std::size_t{0}, count - 1}) {
    std::vector<std::int64_t> one(count, 0);
    one[rank] = 509;
    tables.emplace_back(one);
  }
  return tables;
}

/// What element i of a rank's bucket is: whole numbers whose sums over four
/// ranks are exact in every type.
inline double element(int rank, std::int64_t i, int salt = 0) {
  return static_cast<double>((i * 5 + rank * 17 + salt * 29) % 61);
}

/// The bucket of a rank, as bytes.
inline std::vector<std::byte> make_bucket(DType dtype, std::int64_t count,
                                          int rank, int salt = 0) {
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(count * size_of(dtype)));
  visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < count; ++i) {
      const T value(static_cast<float>(element(rank, i, salt)));
      std::memcpy(bytes.data() + i * size_of(dtype), &value, sizeof(value));
    }
  });
  return bytes;
}

/// Element i of an array.
inline double value_at(const void* data, DType dtype, std::int64_t i) {
  double result = 0;
  visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
    T value{};
    std::memcpy(&value,
                static_cast<const std::byte*>(data) + i * size_of(dtype),
                sizeof(value));
    result = static_cast<double>(value);
  });
  return result;
}

inline const DType all_dtypes[] = {DType::float16, DType::bfloat16,
                                   DType::float32, DType::float64};

/// The sum in the order of the ranks, which is that of the ordered sum where
/// all sums are exact.
inline void add_exactly(std::span<const Contribution> parts, DType dtype,
                        std::int64_t count, void* out) {
  const Contributions whole{parts, dtype, {0, count}};
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (const Contribution& part : parts)
      sum += value_at(part.data, whole.dtype_of(part), i);
    visit_dtype(main_dtype(dtype), [&]<class T>(std::type_identity<T>) {
      const T value(static_cast<float>(sum));
      std::memcpy(static_cast<std::byte*>(out) + i * std::int64_t{sizeof(T)},
                  &value, sizeof(value));
    });
  }
}

/// The message of the exception that f throws; empty when it throws none.
template <class Exception, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Exception& exception) {
    return exception.what();
  }
  return "";
}

}  // namespace kzero::test
