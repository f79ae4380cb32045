// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/file.h"
#include "fovea/train/model_folder.h"
#include "tests/support/throws.h"
#include "tests/train/overwrite.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

std::vector<NamedFile> two_files() {
  return {{"a.json", "{}\n"}, {"b.bin", std::string(100, '\0')}};
}

class ManifestTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "fovea_manifest_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    for (const NamedFile& file : two_files()) overwrite(folder_ / file.name, file.bytes);
    write_file_durably(folder_ / kManifestName,
                       manifest_text(manifest_of("model", 7, two_files())));
  }
  void TearDown() override { fs::remove_all(folder_); }

  void read_all() { read_all_verified(folder_, read_manifest(folder_)); }

  fs::path folder_;
};

TEST(Manifest, WhatIsWrittenIsReadBack) {
  const std::string text = manifest_text(manifest_of("checkpoint", 500, two_files()));
  const Manifest manifest = parse_manifest(text, "x");
  EXPECT_EQ(manifest.kind, "checkpoint");
  EXPECT_EQ(manifest.step, 500);
  ASSERT_NE(manifest.find("b.bin"), nullptr);
  EXPECT_EQ(manifest.find("b.bin")->size, 100);
  EXPECT_EQ(manifest.find("c"), nullptr);
  EXPECT_EQ(manifest_text(manifest), text);
}

TEST(Manifest, EveryFlippedBitAndTruncationIsFound) {
  const std::string text = manifest_text(manifest_of("checkpoint", 500, two_files()));
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_THROWS(parse_manifest(flipped, "m/MANIFEST.json"), kModelDamaged, "m/MANIFEST.json: ");
  }
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_THROWS(parse_manifest(text.substr(0, size), "x"), kModelDamaged, "x: ");
  }
  EXPECT_THROWS(parse_manifest(text + " ", "x"), kModelDamaged, "not as fovea writes it");
}

TEST(Manifest, ListsOnlyPlainNamesAndEachOnce) {
  for (const char* name :
       {"", ".", "..", "../a", "a/b", "/a", ".a", "a b", "a\n", "MANIFEST.json"}) {
    const std::vector<NamedFile> files = {{name, ""}};
    EXPECT_THROWS(manifest_of("model", 0, files), kInternal, "cannot list");
  }
  const std::vector<NamedFile> twice = {{"a", ""}, {"a", ""}};
  EXPECT_THROWS(manifest_of("model", 0, twice), kInternal, "cannot list");
}

// A forged manifest has the right checksum: its names must still not lead out of the folder.
TEST(Manifest, DoesNotTrustTheNamesItReads) {
  Manifest manifest = manifest_of("model", 0, two_files());
  manifest.files[0].name = "../../etc/passwd";
  EXPECT_THROWS(parse_manifest(manifest_text(manifest), "x"), kModelDamaged, "is not allowed");
  manifest.files[0].name = manifest.files[1].name;
  EXPECT_THROWS(parse_manifest(manifest_text(manifest), "x"), kModelDamaged, "there twice");
}

TEST_F(ManifestTest, AWholeFolderIsRead) {
  const auto files = read_all_verified(folder_, read_manifest(folder_));
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[1].name, "b.bin");
  EXPECT_EQ(files[1].bytes, std::string(100, '\0'));
}

TEST_F(ManifestTest, EveryFlippedBitOfAFileIsFoundAndTheFileNamed) {
  for (const NamedFile& file : two_files()) {
    for (std::size_t bit = 0; bit < 8 * file.bytes.size(); bit += 7) {
      std::string flipped = file.bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      overwrite(folder_ / file.name, flipped);
      EXPECT_THROWS(read_all(), kModelDamaged, file.name + ": wrong checksum");
    }
    overwrite(folder_ / file.name, file.bytes);
  }
  EXPECT_NO_THROW(read_all());
}

TEST_F(ManifestTest, AFileOfTheWrongSizeOrNoneIsNamed) {
  overwrite(folder_ / "b.bin", std::string(99, '\0'));
  EXPECT_THROWS(read_all(), kModelDamaged, "b.bin: expected 100 bytes, got 99");
  overwrite(folder_ / "b.bin", std::string(101, '\0'));
  EXPECT_THROWS(read_all(), kModelDamaged, "b.bin: expected 100 bytes, got 101");
  fs::remove(folder_ / "b.bin");
  EXPECT_THROWS(read_all(), kModelDamaged, "b.bin: missing");
  fs::create_directory(folder_ / "b.bin");
  EXPECT_THROWS(read_all(), kModelDamaged, "b.bin: missing or unreadable");
  fs::remove(folder_ / kManifestName);
  EXPECT_THROWS(read_all(), kModelDamaged, "no manifest: ");
}

TEST_F(ManifestTest, MoreThanTheDiskHoldsIsRefused) {
  EXPECT_NO_THROW(require_disk_space(folder_, 1000));
  EXPECT_THROWS(require_disk_space(folder_, std::uintmax_t{1} << 60), kDiskFull, "are needed");
}

}  // namespace
}  // namespace fovea
