// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The example's command line.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "agreement.hpp"
#include "options.hpp"

namespace {

/// A command line that can be taken apart.
struct CommandLine {
  std::vector<std::string> words;
  std::vector<char*> pointers;
  int count;

  explicit CommandLine(std::vector<std::string> arguments)
      : words(std::move(arguments)) {
    words.insert(words.begin(), "02_digits");
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    count = static_cast<int>(words.size());
  }
  digits::Options take() {
    return digits::take_options(count, pointers.data());
  }
};

digits::Options take(std::vector<std::string> arguments) {
  return CommandLine(std::move(arguments)).take();
}

TEST(DigitsOptions, DefaultsAndBothSpellings) {
  EXPECT_EQ(take({}).batch, 64);
  EXPECT_EQ(take({"--batch", "7"}).batch, 7);
  EXPECT_EQ(take({"--batch=7"}).batch, 7);
  EXPECT_EQ(take({"--hidden", "8,4,2"}).network.hidden,
            (std::vector<int>{8, 4, 2}));
  EXPECT_EQ(take({"--dtype", "bfloat16"}).network.dtype,
            kzero::DType::bfloat16);
  EXPECT_EQ(take({"--learning-rate", "1e-3"}).learning_rate, 1e-3);
  EXPECT_TRUE(take({"--checkpoint", "a.h5", "--resume"}).resume);
}

TEST(DigitsOptions, KokkosOptionsAreLeft) {
  CommandLine line({"--seed", "3", "--kokkos-num-threads=2", "--clip", "1"});
  const digits::Options options = line.take();
  EXPECT_EQ(options.seed, 3);
  EXPECT_EQ(options.clip, 1.0);
  ASSERT_EQ(line.count, 2);
  EXPECT_STREQ(line.pointers[1], "--kokkos-num-threads=2");
  EXPECT_EQ(line.pointers[2], nullptr);
}

TEST(DigitsOptions, WrongOnesAreRefused) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--bacth", "64"},
      {"64"},
      {"--batch"},
      {"--batch", "--resume"},
      {"--batch", "0"},
      {"--batch", "6x"},
      {"--batch", "-1"},
      {"--batch="},
      {"--epochs", "1e3"},
      {"--hidden", "8,,4"},
      {"--hidden", "8,"},
      {"--hidden", "0"},
      {"--dtype", "float64"},
      {"--loss-scale", "0"},
      {"--loss-scale", "1e39"},
      {"--loss-scale", "dynamic:"},
      {"--loss-scale", "dynamic8"},
      {"--loss-scale", "dynamic:0"},
      {"--loss-scale", "static"},
      {"--activation", "gelu"},
      {"--learning-rate", "-1"},
      {"--learning-rate", "nan"},
      {"--clip", "0"},
      {"--seed", "9223372036854775808"},
      {"--resume"},
      {"--checkpoint-every", "2"},
      {"--resume=yes"},
      {"--learning-rate", "1e999"},
  };
  for (const auto& arguments : wrong) {
    EXPECT_THROW(take(arguments), digits::UserError) << arguments[0];
  }
}

TEST(DigitsOptions, LossScales) {
  using kzero::DType, kzero::Scaler;
  EXPECT_FALSE(take({}).scaler.has_value());
  EXPECT_EQ(take({"--loss-scale", "8"}).scaler, Scaler::constant(8.0));
  EXPECT_EQ(take({"--loss-scale", "dynamic"}).scaler, Scaler::dynamic());
  EXPECT_EQ(take({"--loss-scale=dynamic:4"}).scaler->scaling().initial_scale,
            4.0);
  EXPECT_EQ(digits::default_scaler(DType::float16), Scaler::dynamic());
  EXPECT_EQ(digits::default_scaler(DType::bfloat16), Scaler::none);
}

TEST(DigitsOptions, MessageSaysWhatIsExpected) {
  try {
    take({"--batch", "many"});
    FAIL() << "accepted";
  } catch (const digits::UserError& error) {
    EXPECT_STREQ(error.what(),
                 "--batch got \"many\", expected a whole number from 1 to "
                 "2147483647");
  }
}

TEST(DigitsOptions, HelpNamesEveryOption) {
  EXPECT_TRUE(take({"--help"}).help);
  EXPECT_NE(digits::usage().find("--bucket-bytes"), std::string::npos);
}

}  // namespace
