// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// H1 to H3: checkpoints against the same bytes written, read and copied by
// plain calls.
#include <fcntl.h>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <kzero/kzero.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "huge_vector.hpp"
#include "io/checkpoint_file.hpp"
#include "io/own_pieces.hpp"
#include "optim/optimizer_access.hpp"
#include "rank_cases.hpp"
#include "rank_options.hpp"
#include "ranks.hpp"
#include "result.hpp"
#include "rounds.hpp"

namespace kzero::bench {
namespace {

using detail::OpenFile;
using detail::OwnPiece;

/// AdamW over float32: value and two moments, 12 bytes an element.
constexpr std::int64_t element_bytes = 12;
constexpr std::int64_t call_bytes = std::int64_t{1} << 20;

void require(int error, const char* what) {
  if (error != 0)
    throw Error(std::string(what) + ": " + detail::error_text(error));
}

/// A folder that rank 0 makes and removes.
class Folder {
 public:
  explicit Folder(const std::string& place) {
    std::string pattern = place + "/kzero_bench_XXXXXX";
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    if (rank_ == 0 && mkdtemp(pattern.data()) == nullptr) pattern.clear();
    int size = static_cast<int>(pattern.size());
    MPI_Bcast(&size, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (size == 0) throw Error("no folder can be made in " + place);
    MPI_Bcast(pattern.data(), size, MPI_CHAR, 0, MPI_COMM_WORLD);
    path_ = pattern;
  }
  ~Folder() {
    MPI_Barrier(MPI_COMM_WORLD);
    std::error_code ignored;
    if (rank_ == 0) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::filesystem::path operator/(const char* name) const {
    return path_ / name;
  }

 private:
  int rank_ = 0;
  std::filesystem::path path_;
};

ShardedOptimizer make(const std::shared_ptr<Communicator>& communicator,
                      std::int64_t elements, int parameters) {
  ParameterSet model;
  for (int i = 0; i < parameters; ++i)
    model.add("layers." + std::to_string(i) + ".weight",
              {elements / parameters});
  ShardedOptimizer optimizer(communicator, model, {});
  optimizer.step();
  return optimizer;
}

/// What this rank owns, as one piece for all that lies side by side in memory
/// and in the file.
class Plain {
 public:
  Plain(ShardedOptimizer& optimizer, const std::filesystem::path& file) {
    const detail::CheckpointReader reader(file, detail::Verify::no);
    bytes_ = reader.bytes();
    detail::for_each_own_piece(
        optimizer, detail::layout_of(optimizer, {}),
        [&](const OwnPiece& piece) {
          const std::int64_t place =
              reader.stored()
                  .arrays[piece.index.parameter][piece.index.array]
                  .place +
              piece.place();
          add(pieces_, {place, piece.data, piece.bytes()});
          if (piece.index.array > 0)
            add(needed_, {place, piece.data, piece.bytes()});
          own_ += piece.bytes();
        });
    const auto& parameters = reader.layout().parameters;
    for (std::size_t i = parameters.size(); i-- > 0;)
      add(needed_,
          {reader.stored().arrays[i][0].place,
           detail::OptimizerAccess::contiguous_value(
               optimizer, {static_cast<std::int64_t>(i)}),
           detail::array_bytes(parameters[i], parameters[i].arrays[0].dtype)});
    memory_.resize(static_cast<std::size_t>(own_));
  }

  /// All ranks; the first one makes the file and gives it its name.
  void write(Communicator& communicator, const std::filesystem::path& path,
             bool durable) {
    const std::filesystem::path temporary = path.string() + ".tmp";
    const bool first = communicator.rank() == 0;
    if (first) {
      const OpenFile file(temporary, O_RDWR | O_CREAT | O_TRUNC);
      // Room that is set aside is written several times as fast.
      require(posix_fallocate(file.descriptor(), 0, bytes_), "fallocate");
    }
    communicator.barrier({"bench"});
    {
      const OpenFile file(temporary, O_RDWR);
      for (const Piece& piece : pieces_)
        for_each_call(piece, [&](std::int64_t place, std::byte* data,
                                 std::int64_t bytes) {
          require(file.write(place, data, bytes).error, "pwrite");
        });
      if (durable) require(file.sync(), "fsync");
    }
    communicator.barrier({"bench"});
    if (first) std::filesystem::rename(temporary, path);
    communicator.barrier({"bench"});
  }

  /// What a rank needs: its own state, and all values.
  void read(const std::filesystem::path& path) {
    const OpenFile file(path, O_RDONLY);
    for (const Piece& piece : needed_)
      for_each_call(
          piece, [&](std::int64_t place, std::byte* data, std::int64_t bytes) {
            require(file.read(place, data, bytes).error, "pread");
          });
  }

  void copy() {
    std::byte* to = memory_.data();
    for (const Piece& piece : pieces_) {
      std::memcpy(to, piece.data, static_cast<std::size_t>(piece.bytes));
      to += piece.bytes;
    }
  }

 private:
  struct Piece {
    std::int64_t place = 0;
    std::byte* data = nullptr;
    std::int64_t bytes = 0;
  };

  static void add(std::vector<Piece>& pieces, const Piece& piece) {
    if (!pieces.empty() &&
        pieces.back().place + pieces.back().bytes == piece.place &&
        pieces.back().data + pieces.back().bytes == piece.data)
      pieces.back().bytes += piece.bytes;
    else
      pieces.push_back(piece);
  }

  template <class F>
  static void for_each_call(const Piece& piece, F&& f) {
    for (std::int64_t done = 0; done < piece.bytes; done += call_bytes)
      f(piece.place + done, piece.data + done,
        std::min(call_bytes, piece.bytes - done));
  }

  std::vector<Piece> pieces_;
  std::vector<Piece> needed_;
  std::int64_t bytes_ = 0;  // of the file
  std::int64_t own_ = 0;
  HugeVector<std::byte> memory_;
};

struct CheckpointCase {
  RankOptions ranks;
  std::string folder = std::filesystem::temp_directory_path().string();
};

std::string size_text(std::int64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

void measure_file(Report& report, Ranks& ranks,
                  const std::shared_ptr<Communicator>& communicator,
                  const Folder& folder, std::int64_t bytes, int rounds) {
  ShardedOptimizer optimizer = make(communicator, bytes / element_bytes, 16);
  const std::filesystem::path file = folder / "model.h5";
  const auto save = [&](Engine engine, bool durable) {
    return ranks.time([&] {
      save_checkpoint(optimizer, file, {.engine = engine, .durable = durable});
    });
  };
  save(Engine::direct, false);
  Plain plain(optimizer, file);
  const std::string text = ranks.text() + ", " + size_text(bytes);
  for (const bool durable : {false, true}) {
    const Candidate candidates[] = {
        [&] { return save(Engine::direct, durable); },
        [&] { return save(Engine::gather, durable); },
        [&] {
          return ranks.time(
              [&] { plain.write(*communicator, folder / "plain", durable); });
        }};
    const auto seconds = alternate(rounds, candidates);
    const std::string flushed = durable ? ", flushed" : "";
    report.add(summarize(
        "H1", "save, " + text + flushed + ": pwrite / direct, with checksums",
        ratios(seconds[2], seconds[0]), Goal::at_least, 0.8));
    report.add(summarize(
        "H1", "save, " + text + flushed + ": pwrite / gather, with checksums",
        ratios(seconds[2], seconds[1]), Goal::at_least, 0.5));
  }
  const auto load = [&](bool verify) {
    return ranks.time(
        [&] { load_checkpoint(optimizer, file, {.verify = verify}); });
  };
  const Candidate readers[] = {
      [&] { return load(false); }, [&] { return load(true); },
      [&] { return ranks.time([&] { plain.read(file); }); }};
  const auto seconds = alternate(rounds, readers);
  report.add(summarize("H1", "load, " + text + ": pread / no checksums",
                       ratios(seconds[2], seconds[0]), Goal::at_least, 0.95));
  report.add(summarize("H1", "load, " + text + ": pread / with checksums",
                       ratios(seconds[2], seconds[1]), Goal::at_least, 0.8));

  const Candidate stalls[] = {
      [&] {
        SaveTicket ticket;
        const double stall = ranks.time([&] {
          ticket = save_checkpoint_async(optimizer, file, {.durable = false});
        });
        ticket.wait();
        return stall;
      },
      [&] { return ranks.time([&] { plain.copy(); }); }};
  const auto stalled = alternate(rounds, stalls);
  report.add(summarize("H2", "stall of a save, " + text + ": / memcpy",
                       ratios(stalled[0], stalled[1]), Goal::at_most, 1.1));
}

void measure_many(Report& report, Ranks& ranks,
                  const std::shared_ptr<Communicator>& communicator,
                  const Folder& folder, int parameters, int rounds) {
  constexpr std::int64_t each = 1024;  // elements
  ShardedOptimizer many = make(communicator, parameters * each, parameters);
  ShardedOptimizer one = make(communicator, parameters * each, 1);
  const auto save = [&](ShardedOptimizer& optimizer, const char* name) {
    return ranks.time(
        [&] { save_checkpoint(optimizer, folder / name, {.durable = false}); });
  };
  const auto load = [&](ShardedOptimizer& optimizer, const char* name) {
    return ranks.time([&] { load_checkpoint(optimizer, folder / name); });
  };
  std::vector<double> saves;
  std::vector<double> loads;
  // One after another as long: the layout of the last model is kept.
  save(many, "many.h5");
  std::vector<double> of_many;
  for (int i = 0; i < rounds; ++i) of_many.push_back(save(many, "many.h5"));
  save(one, "one.h5");
  for (int i = 0; i < rounds; ++i)
    saves.push_back(of_many[static_cast<std::size_t>(i)] / save(one, "one.h5"));
  load(many, "many.h5");
  load(one, "one.h5");
  for (int i = 0; i < rounds; ++i) {
    const double a = load(many, "many.h5");
    loads.push_back(a / load(one, "one.h5"));
  }
  const std::string text = ranks.text() + ", " + std::to_string(parameters) +
                           " parameters of 4 KiB / one of the same bytes";
  report.add(summarize("H1", "save, " + text, saves, Goal::at_most, 1.5));
  report.add(summarize("H1", "load, " + text, loads, Goal::at_most, 1.5));
}

/// The first ranks of the world; null on the others.
std::shared_ptr<Communicator> first(const Ranks& ranks, int count) {
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, ranks.rank() < count ? 0 : MPI_UNDEFINED,
                 ranks.rank(), &part);
  if (part == MPI_COMM_NULL) return nullptr;
  auto communicator = make_communicator(part);
  MPI_Comm_free(&part);
  return communicator;
}

void measure_reshard(Report& report, Ranks& ranks, const Folder& folder,
                     std::int64_t bytes, int rounds) {
  const std::filesystem::path file = folder / "model.h5";
  for (const auto& [from, to] : {std::pair(2, 8), std::pair(8, 3)}) {
    if (from > ranks.size() || to > ranks.size()) continue;
    if (const auto communicator = first(ranks, from)) {
      ShardedOptimizer saving = make(communicator, bytes / element_bytes, 16);
      save_checkpoint(saving, file, {.durable = false});
    }
    ranks.meet();
    const auto communicator = first(ranks, to);
    std::optional<ShardedOptimizer> loading;
    std::optional<Plain> plain;
    if (communicator) {
      loading.emplace(make(communicator, bytes / element_bytes, 16));
      plain.emplace(*loading, file);
    }
    const Candidate candidates[] = {[&] {
                                      return ranks.time([&] {
                                        if (loading)
                                          load_checkpoint(*loading, file);
                                      });
                                    },
                                    [&] {
                                      return ranks.time([&] {
                                        if (plain) plain->read(file);
                                      });
                                    }};
    const auto seconds = alternate(rounds, candidates);
    report.add(summarize("H3",
                         "load on " + std::to_string(to) + " what " +
                             std::to_string(from) + " ranks saved, " +
                             size_text(bytes) + ": pread / load",
                         ratios(seconds[1], seconds[0]), Goal::at_least, 0.8));
  }
}

void measure(Report& report, CheckpointCase& of) {
  Ranks ranks;
  const auto communicator = of.ranks.start();
  const Folder folder(of.folder);
  const std::vector<int> sizes = of.ranks.sizes_or({1024}, {32});
  for (const int mebibytes : sizes) {
    const std::int64_t bytes = std::int64_t{mebibytes} << 20;
    if (ranks.size() < 8)
      measure_file(report, ranks, communicator, folder, bytes, of.ranks.rounds);
    else
      measure_reshard(report, ranks, folder, bytes, of.ranks.rounds);
  }
  if (ranks.size() < 8)
    measure_many(report, ranks, communicator, folder,
                 of.ranks.brief ? 1000 : 10000, of.ranks.rounds);
}

}  // namespace

void add_checkpoint(CLI::App& app, Report& report) {
  CLI::App* const command = app.add_subcommand(
      "checkpoint", "H1, H2: checkpoints against pwrite; H3 on 8 ranks");
  const auto options = std::make_shared<CheckpointCase>();
  add_options(*command, options->ranks);
  command->add_option("--folder", options->folder, "where files are written");
  command->callback([options, &report] { measure(report, *options); });
}

}  // namespace kzero::bench
