// SPDX-License-Identifier: Apache-2.0
// Archives of arrays made by hand: each has one mistake, which is named, or is odd and valid.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "fovea/base/file.h"
#include "fovea/tensor/checksum.h"
#include "fovea/tensor/npz.h"
#include "fovea/tensor/tensor_file.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

constexpr std::string_view kValid = "";

struct Handmade {
  std::string verdict;  ///< part of the message that must come; kValid: it is read
  std::string bytes;
};

std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

// ---- arrays

const std::string kText = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";

std::string array(const std::string& header, std::size_t values = 8, int major = 1, int minor = 0) {
  return "\x93NUMPY" + little(static_cast<std::uint64_t>(major), 1) +
         little(static_cast<std::uint64_t>(minor), 1) + little(header.size(), major == 1 ? 2 : 4) +
         header + std::string(values, '\1');
}

std::string typed(std::string_view descr, std::size_t values) {
  return array(fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': (2,), }}", descr),
               values);
}

std::string shaped(std::string_view shape, std::size_t values = 8) {
  return array(fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': {}, }}", shape),
               values);
}

std::string ordered(std::string_view order) {
  return array(fmt::format("{{'descr': '<f4', 'fortran_order': {}, 'shape': (2,), }}", order));
}

// ---- archives

/// A member, and what its two headers say of it, each of which may be a lie.
struct Member {
  explicit Member(std::string name_, std::string bytes_)
      : name(std::move(name_)),
        bytes(std::move(bytes_)),
        crc(crc32(bytes)),
        packed(bytes.size()),
        size(bytes.size()) {}

  std::string name, bytes;
  std::uint64_t crc, packed, size;
  std::uint64_t method = 0, flags = 0, disk = 0;
  std::string local_name = name;
  std::uint64_t local_method = 0;
  std::string local_signature = "PK\x03\x04", entry_signature = "PK\x01\x02";
  std::string local_extra = {}, extra = {}, comment = {};
  std::int64_t moved = 0;  ///< how far from its place its header is said to be
};

struct Archive {
  std::vector<Member> members;
  std::string before = {}, between = {}, signature = "PK\x05\x06", comment = {}, tail = {};
  std::uint64_t disk = 0, disk_of_directory = 0;
  std::int64_t more_here = 0, more = 0, longer = 0, later = 0;  ///< lies of the end

  std::string bytes() const {
    std::string file = before, directory;
    for (const Member& m : members) {
      directory += m.entry_signature + little(20, 2) + little(20, 2) + little(m.flags, 2) +
                   little(m.method, 2) + little(0, 4) + little(m.crc, 4) + little(m.packed, 4) +
                   little(m.size, 4) + little(m.name.size(), 2) + little(m.extra.size(), 2) +
                   little(m.comment.size(), 2) + little(m.disk, 2) + little(0, 6) +
                   little(file.size() + static_cast<std::uint64_t>(m.moved), 4) + m.name + m.extra +
                   m.comment;
      file += m.local_signature + little(20, 2) + little(m.flags, 2) + little(m.local_method, 2) +
              little(0, 4) + little(m.crc, 4) + little(m.packed, 4) + little(m.size, 4) +
              little(m.local_name.size(), 2) + little(m.local_extra.size(), 2) + m.local_name +
              m.local_extra + m.bytes;
    }
    file += between;
    const auto lie = [](std::size_t value, std::int64_t by) {
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(value) + by);
    };
    const std::string end =
        little(disk, 2) + little(disk_of_directory, 2) + little(lie(members.size(), more_here), 2) +
        little(lie(members.size(), more), 2) + little(lie(directory.size(), longer), 4) +
        little(lie(file.size(), later), 4) + little(comment.size(), 2) + comment;
    return file + directory + signature + end + tail;
  }
};

std::string holding(const std::string& bytes) { return Archive{{Member("q.npy", bytes)}}.bytes(); }

// The archive of two good members, changed by f.
std::string changed(const std::function<void(Archive&)>& f) {
  Archive archive{{Member("q.npy", array(kText)), Member("k.npy", array(kText))}};
  f(archive);
  return archive.bytes();
}

std::string with_member(const std::function<void(Member&)>& f) {
  return changed([&](Archive& archive) { f(archive.members[0]); });
}

// A member that is deflated so, and claims such a size.
std::string deflated(const std::string& packed, const std::string& bytes) {
  return with_member([&](Member& m) {
    m = Member("q.npy", packed);
    m.method = m.local_method = 8;
    m.crc = crc32(bytes);
    m.size = bytes.size();
  });
}

// A block that is stored, as the last one or not.
std::string block(const std::string& bytes, bool last) {
  return little(last ? 1 : 0, 1) + little(bytes.size(), 2) + little(~bytes.size(), 2) + bytes;
}

std::vector<Handmade> headers() {
  std::vector<Handmade> files = {
      {"is no array of numpy", ""},
      {"is no array of numpy", "\x93"},
      {"is no array of numpy", "\x93NUMPY"},
      {"is no array of numpy", "\x93NUMPY\x01"},
      {"is no array of numpy", "PK\x03\x04"},
      {"is no array of numpy", "\x80\x04."},  // a pickle
      {"is no array of numpy", "\x92" + array(kText).substr(1)},
      {"is no array of numpy", "x" + array(kText)},
      {"is of version 0.0", array(kText, 8, 0)},
      {"is of version 4.0", array(kText, 8, 4)},
      {"is of version 1.1", array(kText, 8, 1, 1)},
      {"is of version 255.0", array(kText, 8, 255)},
      {"ends within its header", array(kText).substr(0, 8)},
      {"ends within its header", array(kText).substr(0, 9)},
      {"ends within its header", array(kText, 8, 2).substr(0, 11)},
      {"ends within its header", array(kText).substr(0, 40)},
      {"at most 10000", array(std::string(10001, ' '))},
      {"at most 10000", array(kText + std::string(60000, ' '))},
      {"at most 10000", "\x93NUMPY" + std::string("\x02\x00\xff\xff\xff\xff", 6)},
      {"no '{' where one should be", array("")},
      {"no '{' where one should be", array("[]")},
      {"no '{' where one should be", array("(2,)")},
      {"no '{' where one should be", array("\t" + kText)},
      {"a key missing", array("{}")},
      {"a key missing", array("{'descr': '<f4', 'shape': (2,), }")},
      {"a key missing", array("{'descr': '<f4', 'fortran_order': False, }")},
      {"a key missing", array("{'fortran_order': False, 'shape': (2,), }")},
      {"the key 'x' twice, or where none may be", array("{'x': 1}")},
      {"the key 'descr' twice", array("{'descr': '<f4', 'descr': '<f4', }")},
      {"the key 'shape' twice", array("{'shape': (2,), 'shape': (2,), }")},
      {"the key 'fortran_order' twice", array("{'fortran_order': False, 'fortran_order': False}")},
      {"more than one dictionary", array(kText + kText)},
      {"more than one dictionary", array(kText + "x")},
      {"more than one dictionary", array(kText + std::string(1, '\0'))},
      {"a text without end", array("{'descr")},
      {"no text where one should be", array("{descr: '<f4'}")},
      {"no ':' where one should be", array("{'descr' '<f4'}")},
      {"no '}' where one should be", array("{'descr': '<f4' 'shape': (2,)}")},
      {"no text where one should be", array("{,}")},
  };
  for (Handmade& file : files) file.bytes = holding(file.bytes);
  return files;
}

std::vector<Handmade> types_and_shapes() {
  std::vector<Handmade> files = {
      {"is in Fortran order", ordered("True")},
      {"neither True nor False", ordered("0")},
      {"neither True nor False", ordered("'False'")},
      {"no '}' where one should be", ordered("Falsehood")},
      {"a number where the tuple", shaped("(2)")},
      {"no '(' where one should be", shaped("2")},
      {"no '(' where one should be", shaped("[2]")},
      {"a shape without commas", shaped("(2 1)")},
      {"a size that is no whole number", shaped("(-2,)")},
      {"a size that is no whole number", shaped("(+2,)")},
      {"a size that is no whole number", shaped("(None,)")},
      {"a shape without commas", shaped("(2.0,)")},
      {"a shape without commas", shaped("(2L,)")},
      {"a size that is no whole number", shaped("(,)")},
      {"a size that is no whole number", shaped("(2,,)")},
      {"a size that is no whole number", shaped("(9223372036854775808,)")},
      {"more values than can be counted", shaped("(4611686018427387904, 4)")},
      {"9223372036854775807 values of 4 bytes", shaped("(9223372036854775807,)")},
      {"has 7 axes", shaped("(1,1,1,1,1,1,2)")},
      {"6 values of 4 bytes; 8 bytes follow", shaped("(2, 3)")},
      {"2 values of 4 bytes; 7 bytes follow", shaped("(2,)", 7)},
      {"2 values of 4 bytes; 9 bytes follow", shaped("(2,)", 9)},
      {"2 values of 4 bytes; 0 bytes follow", shaped("(2,)", 0)},
      {"1 values of 4 bytes; 8 bytes follow", shaped("()")},
      {"0 values of 4 bytes; 8 bytes follow", shaped("(0,)")},
      {"holds objects; only plain numbers can be used", typed("'|O'", 8)},
      {"holds records", typed("[('a', '<f4')]", 8)},
      {"no text where one should be", typed("('<f4', (2,))", 16)},
  };
  for (const char* type :
       {">f4", "<f2",     "<f16", "<i2", "|i1", "<u2", "<u4", "<u8",  "<c8", "|S4",
        "<U4", "<M8[ns]", "|V4",  "=f4", "f4",  "<F4", "",    "<f4 ", ">i8", "float32"}) {
    files.push_back(
        {fmt::format("holds values of type '{}'", type), typed(fmt::format("'{}'", type), 8)});
  }
  for (Handmade& file : files) file.bytes = holding(file.bytes);
  return files;
}

std::vector<Handmade> directories() {
  const std::string good = changed([](Archive&) {}), end = "does not end with the directory";
  return {
      {end, "PK"},
      {end, good.substr(0, good.size() - 1)},
      {end, good.substr(0, good.size() - 22)},
      {end, changed([](Archive& a) { a.signature = "PK\x06\x06"; })},
      {end, changed([](Archive& a) { a.tail = "x"; })},
      {end, changed([](Archive& a) { a.comment = "a comment"; })},
      {"has a comment", changed([](Archive& a) {
         a.tail = a.signature + std::string(16, '\0') + std::string("\x01\0", 2);
       })},
      {"the directory claims bytes", changed([](Archive& a) { a.later = 1; })},
      {"the directory claims bytes", changed([](Archive& a) { a.later = -1; })},
      {"the directory claims bytes", changed([](Archive& a) { a.longer = 1; })},
      {"the directory claims bytes", changed([](Archive& a) { a.longer = 1 << 30; })},
      {"the directory claims bytes", "x" + good},
      {"ZIP64", changed([](Archive& a) { a.more = a.more_here = 0xffff - 2; })},
      {"several disks", changed([](Archive& a) { a.disk = 1; })},
      {"several disks", changed([](Archive& a) { a.disk_of_directory = 1; })},
      {"several disks", changed([](Archive& a) { a.more_here = 1; })},
      {"ends after 2 of 3 members", changed([](Archive& a) { a.more = a.more_here = 1; })},
      {"holds more than its members", changed([](Archive& a) { a.more = a.more_here = -1; })},
      {"holds more than its members", changed([](Archive& a) { a.more = a.more_here = -2; })},
      {"ends after 0 of 2 members", changed([](Archive& a) { a.later = 1, a.longer = -1; })},
      {"ends after 0 of 2", with_member([](Member& m) { m.entry_signature = "PK\x01\x03"; })},
      {"is encrypted", with_member([](Member& m) { m.flags = 1; })},
      {"is encrypted or patched", with_member([](Member& m) { m.flags = 1 << 5; })},
      {"is encrypted or patched", with_member([](Member& m) { m.flags = 1 << 13; })},
      {"packed by method 12", with_member([](Member& m) { m.method = m.local_method = 12; })},
      {"packed by method 65535", with_member([](Member& m) { m.method = m.local_method = 65535; })},
      {"ZIP64", with_member([](Member& m) { m.packed = m.size = 0xffffffff; })},
      {"ZIP64", with_member([](Member& m) { m.size = 0xffffffff; })},
      {"claims 4294967294 bytes of", with_member([](Member& m) { m.size = 0xfffffffe; })},
      {"ends outside of the file", with_member([](Member& m) { m.packed = m.size = 0xfffffffe; })},
      {"claims", with_member([](Member& m) { ++m.size; })},
      {"begins outside of the file", with_member([](Member& m) { m.moved = 0xfffffff0; })},
      {"has no header where", with_member([](Member& m) { m.moved = 1; })},
      {"has no header where", with_member([](Member& m) { m.local_signature = "PK\x01\x02"; })},
      {"has another name or method", with_member([](Member& m) { m.local_name = "k.npy"; })},
      {"has another name or method", with_member([](Member& m) { m.local_name = "q.npyx"; })},
      {"has another name or method", with_member([](Member& m) { m.local_name = ""; })},
      {"has another name or method", with_member([](Member& m) { m.local_method = 8; })},
      {"has a wrong checksum", with_member([](Member& m) { ++m.crc; })},
      {"'q.npy' and 'k.npy' overlap",
       with_member([](Member& m) { m.packed = m.size = m.size + 4; })},
  };
}

std::vector<Handmade> members() {
  const std::string good = array(kText), size = "does not deflate to the";
  const auto half = good.size() / 2;
  const auto twice = [&](const std::string& first, const std::string& second) {
    return Archive{{Member(first, good), Member(second, good)}}.bytes();
  };
  return {
      {"tensor 'q' is there twice", twice("q.npy", "q.npy")},
      {"tensor '' is there twice", twice(".npy", ".npy")},
      {"member 'readme' is no .npy file", twice("q.npy", "readme")},
      {"member 'q.NPY' is no .npy file", twice("q.NPY", "k.npy")},
      {"member 'folder/' is no .npy file", twice("q.npy", "folder/")},
      {"member '' is no .npy file", twice("q.npy", "")},
      {"member 'q.npy\\x00' is no .npy file", twice(std::string("q.npy\0", 6), "k.npy")},
      {"'q.npy' " + size, deflated(good, good)},
      {size, deflated("\x07", good)},  // a block of a kind that there is not
      {size, deflated(block(good, true) + "x", good)},
      {size, deflated(block(good, true) + block("", true), good)},
      {size, deflated(block(good, false), good)},
      {size, deflated(block(good.substr(0, half), true), good)},
      {size, deflated(block(good + "x", true), good)},
      {size, deflated(block(good, false) + block("x", true), good)},
      {size, deflated(block(good, true).substr(0, half), good)},
      {"has a wrong checksum", deflated(block(good.substr(0, good.size() - 1) + "x", true), good)},
  };
}

std::vector<Handmade> valid() {
  const std::string good = array(kText);
  std::vector<std::string> files = {
      Archive{}.bytes(),
      changed([](Archive&) {}),
      changed([](Archive& a) { a.between = "bytes that belong to nobody"; }),
      with_member(
          [](Member& m) { m.moved = 0, m.local_extra = std::string(20, 'x'); }),  // numpy's own
      with_member([](Member& m) { m.extra = std::string(20, 'x'); }),
      with_member([](Member& m) { m.comment = "a comment"; }),
      with_member([](Member& m) { m.flags = 1 << 11; }),
      with_member([](Member& m) { m.flags = 1 << 3; }),
      with_member([](Member& m) { m.name = m.local_name = ".npy"; }),
      with_member([](Member& m) { m.name = m.local_name = "../../etc/passwd.npy"; }),
      with_member([](Member& m) { m.name = m.local_name = "\xe4\xb8\xad.npy"; }),
      with_member([](Member& m) { m.name = m.local_name = "\xff.npy"; }),
      deflated(block(good, true), good),
      deflated(block("", false) + block(good, false) + block("", true), good),
      deflated(block(good.substr(0, 9), false) + block(good.substr(9), true), good),
      changed([](Archive& a) {
        std::swap(a.members[0].name, a.members[1].name),
            std::swap(a.members[0].local_name, a.members[1].local_name);
      }),
  };
  for (const std::string& one :
       {array(kText, 8, 2), array(kText, 8, 3), array(kText + "\n"),
        array(kText + std::string(9900, ' ')),
        array("{'shape':(2,),'fortran_order':False,'descr':'<f4'}"),
        array("{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (2,)}"), shaped("(2,1)"),
        shaped("(2, 1, )"), shaped("()", 4), shaped("(0,)", 0),
        shaped("(0, 9223372036854775807)", 0), shaped("(1, 1, 1, 1, 1, 2)"), shaped("( 2 , )"),
        typed("'<f8'", 16), typed("'<i4'", 8), typed("'<i8'", 16), typed("'|u1'", 2),
        typed("'|b1'", 2)}) {
    files.push_back(holding(one));
  }
  std::vector<Handmade> all;
  for (std::string& file : files) all.push_back({std::string(kValid), std::move(file)});
  return all;
}

void expect_verdict(const std::optional<Error>& refused, const Handmade& file,
                    const std::string& where) {
  const std::string shown = testing::PrintToString(file.bytes.substr(0, 300)) + file.verdict;
  ASSERT_EQ(refused.has_value(), file.verdict != kValid)
      << shown << (refused ? refused->what() : "");
  if (!refused) return;
  EXPECT_EQ(info(refused->code()).name, info(ErrorCode::kInputFormat).name) << shown;
  EXPECT_THAT(refused->what(), testing::StartsWith(where + ": ")) << shown;
  EXPECT_THAT(refused->what(), testing::HasSubstr(file.verdict)) << shown;
  EXPECT_NE(refused->hint(), "") << shown;
}

TEST(HandmadeNpz, AreReadOrRefusedByWhatIsWrong) {
  const TestFolder folder;
  const std::filesystem::path path = folder / "m.npz";
  std::set<std::string> different;
  std::size_t count = 0;
  for (const auto& files : {headers(), types_and_shapes(), directories(), members(), valid()}) {
    for (const Handmade& file : files) {
      expect_verdict(error_of([&] { parse_npz(file.bytes, "memory"); }), file, "memory");
      write_file_atomically(path, file.bytes);
      expect_verdict(error_of([&] { TensorFile(path).read(); }), file, path.string());
      different.insert(file.bytes);
    }
    count += files.size();
  }
  EXPECT_EQ(different.size(), count);
  EXPECT_GE(count, 140u);
}

}  // namespace
}  // namespace fovea
