// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/sequence_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/config/message_settings.h"
#include "learner/sequence/fit_settings.h"
#include "tests/fit/text_file.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::FitConfig ConfigOf(const std::string& files, std::vector<std::string> overrides = {}) {
  overrides.push_back("data.files=" + files);
  const auto config = LoadFitConfig("", overrides);
  EXPECT_TRUE(config.ok()) << config.status();
  return *config;
}

absl::StatusOr<std::unique_ptr<SequenceStore>> Open(const v1::FitConfig& config, const std::string& folder) {
  return SequenceStore::Open(config, folder, [](double) { return true; });
}

// All sequences of a part, by names.
std::vector<std::string> Read(const SequenceStore& store, Part part) {
  std::vector<std::string> texts;
  for (const BlockPlace& block : store.blocks(part)) {
    Sequences sequences;
    EXPECT_TRUE(store.Read(part, block, &sequences).ok());
    for (size_t i = 0; i < sequences.size(); ++i) {
      std::string text;
      for (uint32_t k = sequences.begins[i]; k < sequences.begins[i + 1]; ++k) {
        text += store.vocabulary().NameOf(sequences.classes[k]) + " ";
      }
      texts.push_back(text + (sequences.cut[i] != 0 ? "..." : ""));
    }
  }
  return texts;
}

TEST(ListDataFiles, TakesAFileOfExactlyThatNameAndRefusesNamesThatNobodyCanWrite) {
  const std::string folder = FreshFolder("names"), comma = folder + "/a,b[1].txt";
  WriteText(comma, "1\n");
  EXPECT_THAT(*ListDataFiles(comma), ElementsAre(comma));
  const auto wrong = ListDataFiles(WriteText(folder + "/a\xff", "1\n"));
  EXPECT_EQ(wrong.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("bytes that are not UTF-8; rename the file"));
}

TEST(SequenceStore, KeepsSequencesOfSeveralFilesInOrder) {
  const std::string folder = FreshFolder("store");
  WriteText(folder + "/a.txt", "5 22 5\n\n007 5\n");
  WriteGzip(folder + "/b.gz", "22\n 9\t9 \n");
  const auto store = Open(ConfigOf(folder + "/a.txt," + folder + "/*.gz", {"data.holdout=0"}), folder + "/data");
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_THAT(Read(**store, Part::kTrain), ElementsAre("5 22 5 ", "7 5 ", "22 ", "9 9 "));
  EXPECT_THAT((*store)->vocabulary().names(), ElementsAre("5", "7", "9", "22"));
  EXPECT_EQ((*store)->counts().train_sequences, 4);
  EXPECT_EQ((*store)->counts().train_keys, 8);
  EXPECT_EQ((*store)->counts().empty_lines, 1);
}

TEST(SequenceStore, HoldsOutTheSameLinesWhateverTheSeed) {
  const std::string folder = FreshFolder("held");
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i % 7) + " 3\n";
  WriteText(folder + "/a", text);
  const auto one = Open(ConfigOf(folder + "/a", {"seed=1"}), folder + "/1");
  const auto two = Open(ConfigOf(folder + "/a", {"seed=2"}), folder + "/2");
  const auto other = Open(ConfigOf(folder + "/a", {"data.holdout_seed=1"}), folder + "/3");
  ASSERT_TRUE(one.ok() && two.ok() && other.ok());
  EXPECT_EQ(Read(**one, Part::kHeldOut), Read(**two, Part::kHeldOut));
  EXPECT_EQ((*one)->digest(), (*two)->digest());
  EXPECT_NE((*one)->digest(), (*other)->digest());
  EXPECT_EQ((*one)->counts().train_sequences + (*one)->counts().held_sequences, 5000);
  EXPECT_NEAR(static_cast<double>((*one)->counts().held_sequences), 1000, 100);  // 0.2, three standard deviations 85.
}

TEST(SequenceStore, IsWrittenAnewWhenFilesOrSettingsChange) {
  const std::string folder = FreshFolder("again");
  WriteText(folder + "/a", "1 2\n");
  const v1::FitConfig config = ConfigOf(folder + "/a", {"data.holdout=0"});
  const auto first = Open(config, folder + "/data");
  ASSERT_TRUE(first.ok());
  int calls = 0;
  const auto same = SequenceStore::Open(config, folder + "/data", [&](double) { return ++calls > 0; });
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(calls, 0);  // Taken as it is.
  EXPECT_EQ((*same)->digest(), (*first)->digest());
  std::ofstream(folder + "/a", std::ios::app) << "3\n";
  const auto longer = Open(config, folder + "/data");
  ASSERT_TRUE(longer.ok());
  EXPECT_EQ((*longer)->counts().train_sequences, 2);
  const auto cut =
      Open(ConfigOf(folder + "/a", {"data.holdout=0", "data.max_length=1", "data.too_long=cut"}), folder + "/data");
  ASSERT_TRUE(cut.ok());
  EXPECT_THAT(Read(**cut, Part::kTrain), ElementsAre("1 ...", "3 "));
  EXPECT_EQ((*cut)->counts().cut, 1);
}

TEST(SequenceStore, IsWrittenAnewWhenItIsDamaged) {
  const std::string folder = FreshFolder("damaged");
  WriteText(folder + "/a", "1 2\n3\n");
  const v1::FitConfig config = ConfigOf(folder + "/a", {"data.holdout=0"});
  ASSERT_TRUE(Open(config, folder + "/data").ok());
  for (const char* name : {"000000.train", "index.json"}) {
    const std::string path = folder + "/data/" + name;
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4);
    file.put('\x7f');
    file.close();
    const auto store = Open(config, folder + "/data");
    ASSERT_TRUE(store.ok()) << name << store.status();
    EXPECT_THAT(Read(**store, Part::kTrain), ElementsAre("1 2 ", "3 ")) << name;
  }
  std::filesystem::resize_file(folder + "/data/000000.train", 4);
  const auto store = Open(config, folder + "/data");
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_THAT(Read(**store, Part::kTrain), ElementsAre("1 2 ", "3 "));
}

TEST(SequenceStore, BeginsBlocksBySequencesAndByWords) {
  const std::string folder = FreshFolder("blocks");
  std::string line;
  for (int i = 0; i < 400'000; ++i) line += "1 ";
  WriteText(folder + "/a", line + "\n" + line + "\n" + line + "\n" + line + "\n");
  const auto store = Open(ConfigOf(folder + "/a", {"data.holdout=0", "data.max_length=1000000"}), folder + "/data");
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_EQ((*store)->blocks(Part::kTrain).size(), 2);  // 3 x 400,001 words are more than 2^20.
  EXPECT_EQ((*store)->blocks(Part::kTrain)[0].sequences, 3);
  EXPECT_EQ((*store)->blocks(Part::kTrain)[1].offset, 3 * 400'001 * sizeof(uint32_t));
}

TEST(SequenceStore, ReadsAFileOnceThatSeveralPatternsName) {
  const std::string folder = FreshFolder("twice");
  WriteText(folder + "/a.txt", "1\n");
  WriteText(folder + "/b.txt", "2\n");
  const auto store =
      Open(ConfigOf(folder + "/b.txt," + folder + "/*.txt," + folder + "/./a.txt", {"data.holdout=0"}), folder + "/d");
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_THAT(Read(**store, Part::kTrain), ElementsAre("2 ", "1 "));
}

TEST(SequenceStore, RefusesKeysThatOnlyHeldOutSequencesHave) {
  const std::string folder = FreshFolder("held-keys");
  std::string text;
  for (int i = 0; i < 100; ++i) text += std::to_string(1000 + i) + "\n";
  WriteText(folder + "/a", text);
  const auto refused = Open(ConfigOf(folder + "/a", {"data.unknown_keys=refuse"}), folder + "/d");
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(refused.status().message()),
              ::testing::MatchesRegex(".*/a:[0-9]+: key '10[0-9]+' is in held-out sequences only.*"));
  const auto counted = Open(ConfigOf(folder + "/a"), folder + "/e");
  ASSERT_TRUE(counted.ok()) << counted.status();
  EXPECT_EQ((*counted)->counts().unknown_keys, (*counted)->counts().held_sequences);
}

TEST(SequenceStore, RefusesWhatIsNoUtf8) {
  const std::string folder = FreshFolder("utf8");
  WriteText(folder + "/a", "b\n\xe9 a\n");
  const auto key = Open(ConfigOf(folder + "/a", {"data.keys=tokens", "data.holdout=0"}), folder + "/d");
  EXPECT_EQ(key.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(key.status().message()), HasSubstr("/a:2: '\\xe9' is no key"));
  WriteText(folder + "/\xe9", "1\n");
  v1::FitConfig config = ConfigOf(folder + "/a");
  config.mutable_data()->set_files(folder + "/\xe9");
  EXPECT_EQ(Open(config, folder + "/d").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(SequenceStore, RefusesBadLinesByFileAndLine) {
  const std::string folder = FreshFolder("bad");
  const auto refusal = [&](const std::string& text, std::vector<std::string> overrides = {}) {
    WriteText(folder + "/a", text);
    overrides.push_back("data.holdout=0");
    const auto store = Open(ConfigOf(folder + "/a", overrides), folder + "/data");
    EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss) << store.status();
    return std::string(store.status().message());
  };
  EXPECT_THAT(refusal("1 2\n3 four\n"), HasSubstr("/a:2: 'four' is no key: want whole numbers"));
  EXPECT_THAT(refusal("1 -2\n"), HasSubstr("/a:1: '-2' is no key"));
  EXPECT_THAT(refusal("1\n5000000000\n"), HasSubstr("/a:2: '5000000000' is no key: whole numbers go up to 4294967295"));
  EXPECT_THAT(refusal(""), HasSubstr("/a:1: the file is empty"));
  EXPECT_THAT(refusal("\n\n"), HasSubstr("/a:2: the file has no sequence"));
  WriteGzip(folder + "/nothing.gz", "");
  EXPECT_THAT(std::string(Open(ConfigOf(folder + "/nothing.gz"), folder + "/data").status().message()),
              HasSubstr("/nothing.gz:1: the file is empty"));
  EXPECT_THAT(refusal("1 2 3\n", {"data.max_length=2"}), HasSubstr("/a:1: more than 2 keys (data.max_length)"));
  EXPECT_THAT(refusal("1\n2\n3\n", {"model.max_vocabulary=2"}),
              HasSubstr("/a:3: '3' is one more than 2 different keys"));
  EXPECT_THAT(refusal("1\n7\n", {"model.vocabulary=5", "data.unknown_keys=refuse"}),
              HasSubstr("/a:2: key 7 is beyond the vocabulary of 5 keys"));
}

TEST(SequenceStore, CountsUnknownKeys) {
  const std::string folder = FreshFolder("unknown");
  WriteText(folder + "/a", "1\n7 7 0\n");
  const auto store = Open(ConfigOf(folder + "/a", {"data.holdout=0", "model.vocabulary=5"}), folder + "/data");
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->counts().unknown_keys, 2);
  EXPECT_THAT(Read(**store, Part::kTrain), ElementsAre("1 ", "unknown unknown 0 "));
}

TEST(SequenceStore, TakesTextsAsKeys) {
  const std::string folder = FreshFolder("tokens");
  WriteText(folder + "/a", "open read 3 close\n");
  const auto store = Open(ConfigOf(folder + "/a", {"data.holdout=0", "data.keys=tokens"}), folder + "/data");
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_THAT((*store)->vocabulary().names(), ElementsAre("3", "close", "open", "read"));
}

}  // namespace
}  // namespace skein
