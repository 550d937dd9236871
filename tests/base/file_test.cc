// SPDX-License-Identifier: Apache-2.0
#include "base/process/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/process/no_links.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::HasSubstr;

// A folder that is empty at the start and gone at the end.
class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/file_test.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  int Entries() const {
    const std::filesystem::directory_iterator begin(folder_);
    return static_cast<int>(std::distance(begin, std::filesystem::directory_iterator()));
  }

  std::string folder_;
};

TEST_F(FileTest, ReadsBackWhatWasWritten) {
  std::string contents = "line\n";
  contents.push_back('\0');
  contents.append(100000, 'x');
  ASSERT_TRUE(WriteFileSynced(Path("a"), contents).ok());
  EXPECT_EQ(ReadFile(Path("a")).value(), contents);
  ASSERT_TRUE(WriteFileSynced(Path("a"), "").ok());
  EXPECT_EQ(ReadFile(Path("a")).value(), "");
}

TEST_F(FileTest, ReadsFilesThatDoNotTellTheirSize) {
  EXPECT_THAT(ReadFile("/proc/self/status").value(), HasSubstr("Threads:"));
}

TEST_F(FileTest, MissingFileIsNotFound) {
  const absl::Status status = ReadFile(Path("none")).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("none")));
}

TEST_F(FileTest, APipeOrADeviceIsRefusedAtOnce) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  for (const std::string& path : {Path("pipe"), std::string("/dev/zero")}) {
    EXPECT_EQ(ReadFile(path).status(), absl::InvalidArgumentError("cannot read " + path + ": is not a regular file"));
  }
}

TEST_F(FileTest, FolderIsAnInvalidArgument) { EXPECT_TRUE(absl::IsInvalidArgument(ReadFile(folder_).status())); }

TEST_F(FileTest, LargerThanAllowedIsAnInvalidArgument) {
  ASSERT_TRUE(WriteFileSynced(Path("a"), "12345").ok());
  EXPECT_EQ(ReadFile(Path("a"), 5).value(), "12345");
  EXPECT_TRUE(absl::IsInvalidArgument(ReadFile(Path("a"), 4).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadFile("/proc/self/status", 4).status()));  // Says its size is 0.
}

TEST_F(FileTest, FullDiskIsResourceExhausted) {
  EXPECT_TRUE(absl::IsResourceExhausted(WriteFileSynced("/dev/full", "x")));
}

TEST_F(FileTest, NotAllowedIsPermissionDenied) {
  // Also for the superuser: the file of a running program cannot be written.
  EXPECT_TRUE(absl::IsPermissionDenied(WriteFileSynced(std::filesystem::read_symlink("/proc/self/exe"), "x")));
}

TEST_F(FileTest, MissingFolderIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(WriteFileSynced(Path("none/a"), "x")));
  EXPECT_TRUE(absl::IsNotFound(WriteFileAtomically(Path("none/a"), "x")));
  EXPECT_TRUE(absl::IsNotFound(SyncFolder(Path("none"))));
}

TEST_F(FileTest, AtomicWriteReplacesAndLeavesNothingElse) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old").ok());
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "new").ok());
  EXPECT_EQ(ReadFile(Path("a")).value(), "new");
  EXPECT_EQ(Entries(), 1);
}

TEST_F(FileTest, FailedAtomicWriteLeavesNothing) {
  std::filesystem::create_directory(Path("taken"));
  ASSERT_TRUE(WriteFileSynced(Path("taken/file"), "x").ok());
  EXPECT_FALSE(WriteFileAtomically(Path("taken"), "new").ok());
  EXPECT_EQ(Entries(), 1);
}

TEST_F(FileTest, WhatWritesFollowsNoLink) {
  ASSERT_TRUE(WriteFileSynced(Path("precious"), "old").ok());
  std::filesystem::create_symlink(Path("precious"), Path("link"));
  for (const absl::Status& status : {WriteFileSynced(Path("link"), "new"), OpenForAppend(Path("link")).status()}) {
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("link is a symbolic link"));
  }
  EXPECT_EQ(ReadFile(Path("precious")).value(), "old");
  ASSERT_TRUE(WriteFileAtomically(Path("link"), "new").ok());  // Takes the link's place.
  EXPECT_EQ(ReadFile(Path("precious")).value(), "old");
}

TEST_F(FileTest, OpensRegularFilesAloneToAppend) {
  for (const char* text : {"one", "two"}) {
    const auto fd = OpenForAppend(Path("a"));
    ASSERT_TRUE(fd.ok()) << fd.status();
    EXPECT_EQ(write(*fd, text, 3), 3);
    close(*fd);
  }
  EXPECT_EQ(ReadFile(Path("a")).value(), "onetwo");
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(OpenForAppend(Path("pipe")).status()));  // Does not wait for a reader.
  EXPECT_TRUE(absl::IsPermissionDenied(OpenForAppend("/dev/null").status()));
  EXPECT_FALSE(OpenForAppend(folder_).ok());
  EXPECT_TRUE(absl::IsNotFound(OpenForAppend(Path("none/a")).status()));
}

TEST_F(FileTest, MakesFoldersButNoneThatIsALink) {
  EXPECT_TRUE(MakeFolder(Path("a/b/c")).ok());
  EXPECT_TRUE(MakeFolder(Path("a/b/c")).ok());
  EXPECT_TRUE(MakeFolder(Path("a/b/d/")).ok());
  EXPECT_TRUE(std::filesystem::is_directory(Path("a/b/d")));
  std::filesystem::create_directory_symlink(Path("a"), Path("link"));
  EXPECT_TRUE(absl::IsPermissionDenied(MakeFolder(Path("link"))));
  EXPECT_TRUE(MakeFolder(Path("link/e")).ok());  // The way there is the caller's.
  EXPECT_TRUE(std::filesystem::is_directory(Path("a/e")));
  ASSERT_TRUE(WriteFileSynced(Path("file"), "x").ok());
  EXPECT_TRUE(absl::IsPermissionDenied(MakeFolder(Path("file"))));
  EXPECT_TRUE(absl::IsPermissionDenied(MakeFolder(Path("file/f"))));
}

TEST_F(FileTest, SyncsAFolder) {
  EXPECT_TRUE(SyncFolder(folder_).ok());
  ASSERT_TRUE(WriteFileSynced(Path("a"), "x").ok());
  EXPECT_FALSE(SyncFolder(Path("a")).ok());
}

}  // namespace
}  // namespace skein
