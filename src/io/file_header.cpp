// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/file_header.hpp"

#include <kzero/error.hpp>

#include "core/message.hpp"
#include "io/checksum.hpp"
#include "io/checksum_text.hpp"

namespace kzero::detail {

namespace {

constexpr std::string_view magic = "kzero checkpoint ";
// Some ten million arrays.
constexpr std::int64_t largest_manifest = std::int64_t{1} << 30;

}  // namespace

std::string header_text(const FileHeader& header) {
  const Json json = {
      {"format_version", Json::array({format_major, format_minor})},
      {"file_bytes", header.file_bytes},
      {"manifest",
       {{"place", header.manifest_place},
        {"bytes", header.manifest_bytes},
        {"checksum", checksum_text(header.manifest_sum)}}},
      {"metadata", {{"checksum", checksum_text(header.metadata_sum)}}}};
  std::string rest = concat("\n", json.dump(1), "\n");
  rest.resize(static_cast<std::size_t>(header_bytes) - magic.size() -
                  checksum_digits - 1,
              ' ');
  rest += '\n';
  return concat(magic,
                checksum_text(checksum(0, rest.data(),
                                       static_cast<std::int64_t>(rest.size()))),
                rest);
}

FileHeader read_header(std::string_view text) {
  if (text.size() != static_cast<std::size_t>(header_bytes) ||
      !text.starts_with(magic))
    throw CheckpointError(
        "it is no kzero checkpoint: give a file that save_checkpoint has "
        "written");
  try {
    const std::string_view rest = text.substr(magic.size() + checksum_digits);
    const Json sum = text.substr(magic.size(), checksum_digits);
    if (checksum_of(JsonNode(sum, "the header's checksum")) !=
        checksum(0, rest.data(), static_cast<std::int64_t>(rest.size())))
      throw InvalidArgument("its checksum is wrong");
    const Json json = parse_json(rest);
    const JsonNode root(json, "");
    const auto version = root.at("format_version").integers();
    if (version.size() != 2)
      throw InvalidArgument("/format_version is no pair");
    if (version[0] > format_major)
      throw InvalidArgument(
          concat("it has the format version ", version[0], '.', version[1],
                 ", this library reads versions up to ", format_major,
                 ".x: load it with a newer kzero"));
    if (version[0] != format_major)
      throw InvalidArgument(concat("it has the format version ", version[0],
                                   '.', version[1],
                                   ", which is no longer "
                                   "read"));
    const JsonNode manifest = root.at("manifest");
    const FileHeader header{
        root.at("file_bytes").integer(), manifest.at("place").integer(),
        manifest.at("bytes").integer(), checksum_of(manifest.at("checksum")),
        checksum_of(root.at("metadata").at("checksum"))};
    if (header.file_bytes < header_bytes ||
        header.manifest_place < header_bytes || header.manifest_bytes < 0 ||
        header.manifest_bytes > largest_manifest ||
        header.manifest_bytes > header.file_bytes - header.manifest_place)
      throw InvalidArgument("the manifest does not lie in the file");
    return header;
  } catch (const std::exception& error) {
    throw CheckpointError(concat("its header is not valid: ", error.what()));
  }
}

}  // namespace kzero::detail
