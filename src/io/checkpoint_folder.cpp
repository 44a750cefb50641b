// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/checkpoint_folder.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <kzero/error.hpp>
#include <optional>
#include <system_error>
#include <tuple>

#include "core/message.hpp"
#include "io/checkpoint_file.hpp"

namespace kzero::detail {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t longest_name = 4096;

/// A complete checkpoint.
struct Found {
  fs::path path;
  std::string created;
  std::int64_t step = 0;
};

std::optional<Found> found(const fs::path& path, std::string* problem) {
  try {
    const CheckpointReader reader(path, Verify::yes, UserArrays::left_out);
    const CheckpointContent& content = reader.layout().content;
    return Found{path, content.created, content.step};
  } catch (const std::exception& error) {
    if (problem != nullptr) *problem = error.what();
    return std::nullopt;
  }
}

bool begins_with(const fs::path& path, std::string_view first) {
  std::string begin(first.size(), '\0');
  const OpenFile file(path, O_RDONLY);
  return file.is_open() &&
         file.read(0, begin.data(), std::ssize(begin)).error == 0 &&
         begin == first;
}

/// Whether it may be a checkpoint; unfinished ones are.
bool looks_like_one(const fs::path& path) {
  return begins_with(path, "kzero ");
}

bool is_unfinished(const fs::path& path) {
  return begins_with(path, "kzero unfinished ");
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator next(folder, error), end; !error && next != end;
       next.increment(error)) {
    std::error_code ignored;
    if (next->is_regular_file(ignored)) files.push_back(next->path());
  }
  if (error)
    throw CheckpointError(concat("cannot read the folder ",
                                 detail::quoted(folder.string()), " (",
                                 error.message(), "): give one that exists"));
  std::ranges::sort(files);
  return files;
}

void sort_newest_first(std::vector<Found>& files) {
  std::ranges::stable_sort(
      files, std::ranges::greater(),
      [](const Found& each) { return std::tie(each.created, each.step); });
}

std::string named_latest(const fs::path& folder) {
  const OpenFile file(folder / latest_name, O_RDONLY);
  if (!file.is_open()) return {};
  std::string name(static_cast<std::size_t>(
                       std::clamp<std::int64_t>(file.size(), 0, longest_name)),
                   '\0');
  if (file.read(0, name.data(), std::ssize(name)).error != 0) return {};
  name.resize(std::min(name.find('\n'), name.size()));
  // A name in this folder, and no way out of it.
  return fs::path(name).filename() == fs::path(name) ? name : std::string();
}

/// The name with each run of digits as one sign.
std::string series_of(const fs::path& file) {
  std::string series;
  for (const char c : file.filename().string()) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit)
      series += c;
    else if (series.empty() || series.back() != '\0')
      series += '\0';
  }
  return series;
}

}  // namespace

void point_to_latest(const fs::path& file, Durable durable) {
  std::error_code ignored;
  const fs::path place = file.parent_path() / latest_name;
  const fs::file_status status = fs::symlink_status(place, ignored);
  if (fs::exists(status) &&
      (!fs::is_regular_file(status) ||
       fs::file_size(place, ignored) > std::uintmax_t{longest_name}))
    throw_not_written(place, 0, "what stands there is not a file of a name");
  NewFile latest(place);
  const std::string text = file.filename().string() + "\n";
  latest.reserve(0);  // without the mark
  latest.write(0, text.data(), std::ssize(text));
  latest.finish(durable);
  latest.take_name(durable);
}

LatestFiles latest_files(const fs::path& folder) {
  LatestFiles latest;
  std::vector<Found> others;
  const std::string named = named_latest(folder);
  const auto pass_over = [&](const std::string& why) {
    latest.passed_over.push_back(why);
  };
  for (const fs::path& path : files_in(folder)) {
    const bool is_named = path.filename() == named;
    if (!is_named && !looks_like_one(path)) continue;
    std::string problem;
    const std::optional<Found> file = found(path, &problem);
    if (!file) {
      pass_over(problem);
      latest.has_lost |= is_named || !is_unfinished(path);
    } else if (is_named) {
      latest.files.push_back(path);
    } else {
      others.push_back(*file);
    }
  }
  std::error_code ignored;
  if (!named.empty() && !fs::exists(folder / named, ignored)) {
    latest.has_lost = true;
    pass_over(concat("\"latest\" names ", detail::quoted(named),
                     ", which is not there"));
  }
  sort_newest_first(others);
  for (const Found& each : others) latest.files.push_back(each.path);
  return latest;
}

std::vector<std::string> remove_old(const fs::path& file, int keep) {
  std::vector<Found> series;
  for (const fs::path& path : files_in(file.parent_path())) {
    if (path.filename() == file.filename() ||
        series_of(path) != series_of(file))
      continue;
    if (std::optional<Found> each = found(path, nullptr))
      series.push_back(*each);
  }
  sort_newest_first(series);
  std::vector<std::string> left;
  for (std::size_t i = static_cast<std::size_t>(keep) - 1; i < series.size();
       ++i) {
    std::error_code error;
    fs::remove(series[i].path, error);
    if (error)
      left.push_back(concat(detail::quoted(series[i].path.string()), " (",
                            error.message(), ")"));
  }
  return left;
}

}  // namespace kzero::detail
