#include "io/npy.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

#include "support/file.h"

namespace kiln::io {
namespace {

Tensor counting(DType dtype, std::vector<std::int64_t> shape) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    tensor.set(static_cast<std::size_t>(i), static_cast<double>(i % 7));
  }
  return tensor;
}

// A file with this header text (padded by the caller as it likes) and data.
std::string file_of(const std::string& header, const std::string& data, char version = 1) {
  std::string out = "\x93NUMPY";
  out += version;
  out += '\0';
  const auto length = header.size();
  out += static_cast<char>(length & 0xff);
  out += static_cast<char>(length >> 8);
  if (version != 1) out += std::string(2, '\0');
  return out + header + data;
}

std::string reason_of(const std::string& bytes) {
  const auto array = parse_npy(bytes, "a.npy");
  EXPECT_FALSE(array.has_value());
  return array ? "" : array.error().reason;
}

TEST(Npy, EveryTypeComesBack) {
  for (const DType dtype :
       {DType::kF16, DType::kBF16, DType::kF32, DType::kF64, DType::kTF32, DType::kE4M3,
        DType::kE5M2, DType::kS8, DType::kU8, DType::kS16, DType::kU16, DType::kS32, DType::kU32,
        DType::kS64, DType::kU64, DType::kBool, DType::kS4, DType::kE2M1}) {
    const Tensor tensor = counting(dtype, {3, 5});
    const std::string bytes = npy_bytes(tensor);
    EXPECT_EQ((bytes.size() - tensor.bytes.size()) % 64, 0U);
    auto array = parse_npy(bytes, "a.npy");
    ASSERT_TRUE(array.has_value()) << name(dtype) << array.error().text();
    const auto back = as_dtype(std::move(*array), dtype);
    ASSERT_TRUE(back.has_value()) << name(dtype);
    EXPECT_EQ(back->shape, tensor.shape);
    EXPECT_EQ(back->bytes, tensor.bytes) << name(dtype);
  }
}

TEST(Npy, ShapesOfRankZeroAndOne) {
  for (const auto& shape : {std::vector<std::int64_t>{}, {4}, {1, 2, 3, 4}, {0, 5}}) {
    const auto array = parse_npy(npy_bytes(counting(DType::kF32, shape)), "a.npy");
    ASSERT_TRUE(array.has_value());
    EXPECT_EQ(array->tensor.shape, shape);
  }
}

TEST(Npy, HeaderTextIsAsNumpyWritesIt) {
  const std::string bytes = npy_bytes(counting(DType::kF16, {64, 80}));
  EXPECT_NE(bytes.find("{'descr': '<f2', 'fortran_order': False, 'shape': (64, 80), }"),
            std::string::npos);
  EXPECT_EQ(bytes[127], '\n');
}

TEST(Npy, FortranOrderIsTransposed) {
  const std::string header = "{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3), }\n";
  const auto array =
      parse_npy(file_of(header, std::string("\x01\x04\x02\x05\x03\x06", 6)), "a.npy");
  ASSERT_TRUE(array.has_value()) << array.error().text();
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(array->tensor.get(i), static_cast<double>(i + 1));
}

TEST(Npy, KeysInAnyOrderAndLaterVersions) {
  const std::string header = "{\"shape\":(2,),'fortran_order':False,'descr':'<u2'}";
  const std::string data("\x80\x3f\x00\x40", 4);
  for (const char version : {'\x01', '\x02', '\x03'}) {
    auto array = parse_npy(file_of(header, data, version), "a.npy");
    ASSERT_TRUE(array.has_value()) << array.error().text();
    const auto bf16 = as_dtype(std::move(*array), DType::kBF16);
    ASSERT_TRUE(bf16.has_value());
    EXPECT_EQ(bf16->get(0), 1);
    EXPECT_EQ(bf16->get(1), 2);
  }
}

TEST(Npy, TypesAreNeverConverted) {
  const auto of = [](DType stored) {
    return *parse_npy(npy_bytes(counting(stored, {2})), "a.npy");
  };
  EXPECT_FALSE(as_dtype(of(DType::kF32), DType::kF16).has_value());
  EXPECT_FALSE(as_dtype(of(DType::kF16), DType::kBF16).has_value());
  EXPECT_FALSE(as_dtype(of(DType::kS16), DType::kBF16).has_value());
  EXPECT_FALSE(as_dtype(of(DType::kU16), DType::kF16).has_value());
  EXPECT_FALSE(as_dtype(of(DType::kBF16), DType::kE4M3).has_value());
  EXPECT_TRUE(as_dtype(of(DType::kU8), DType::kE4M3).has_value());
}

TEST(Npy, HostileFilesHaveAReason) {
  const std::string good = npy_bytes(counting(DType::kF32, {4, 4}));
  EXPECT_NE(reason_of("").find("short"), std::string::npos);
  EXPECT_NE(reason_of("PK\x03\x04 not numpy at all").find("NUMPY"), std::string::npos);
  EXPECT_NE(reason_of(good.substr(0, good.size() - 1)).find("needs 64 bytes of data, it has 63"),
            std::string::npos);
  EXPECT_NE(reason_of(good + "x").find("it has 65"), std::string::npos);
  EXPECT_NE(reason_of(good.substr(0, 40)).find("cut off"), std::string::npos);
  const auto with = [](const std::string& descr, const std::string& shape) {
    return file_of("{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }\n",
                   "1234");
  };
  EXPECT_NE(reason_of(with("'>f4'", "(1,)")).find("big endian"), std::string::npos);
  EXPECT_NE(reason_of(with("'<c8'", "(1,)")).find("<c8"), std::string::npos);
  EXPECT_NE(reason_of(with("'|O'", "(1,)")).find("|O"), std::string::npos);
  EXPECT_NE(reason_of(with("[('a', '<f4')]", "(1,)")).find("records"), std::string::npos);
  EXPECT_NE(reason_of(with("'<f4'", "(-1,)")).find("small integer"), std::string::npos);
  EXPECT_NE(reason_of(with("'<f4'", "(99999999999999999999,)")).find("small integer"),
            std::string::npos);
  EXPECT_NE(reason_of(with("'<f4'", "(4294967296, 4294967296)")).find("too large"),
            std::string::npos);
  EXPECT_NE(reason_of(with("'<f4'", "(1,1,1,1,1,1,1,1,1)")).find("dimensions"), std::string::npos);
  EXPECT_NE(reason_of(with("'<f4'", "1")).find("tuple"), std::string::npos);
  EXPECT_NE(reason_of(file_of("{'descr': '<f4'}", "")).find("lacks"), std::string::npos);
  EXPECT_NE(reason_of(file_of("{'descr': '<f4", "")).find("records"), std::string::npos);
  EXPECT_NE(reason_of(file_of("", "")).find("dictionary"), std::string::npos);
  EXPECT_NE(reason_of(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14)).find("claims"),
            std::string::npos);
  EXPECT_NE(reason_of(std::string("\x93NUMPY\x09\x00\x02\x00{}", 12)).find("version"),
            std::string::npos);
}

TEST(Npy, EveryTruncationIsRefused) {
  const std::string good = npy_bytes(counting(DType::kF16, {3, 3}));
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(parse_npy(std::string_view(good).substr(0, length), "a.npy").has_value());
  }
}

TEST(Npy, FilesRoundTripAndUnreadablePathsFail) {
  const auto folder = std::filesystem::temp_directory_path() / format("kiln_npy_{}", getpid());
  std::filesystem::create_directory(folder);
  const std::string path = (folder / "a.npy").string();
  const Tensor tensor = counting(DType::kS32, {2, 2});
  ASSERT_TRUE(write_npy(path, tensor).has_value());
  const auto array = read_npy(path);
  ASSERT_TRUE(array.has_value());
  EXPECT_EQ(array->tensor.bytes, tensor.bytes);
  EXPECT_FALSE(read_npy((folder / "missing.npy").string()).has_value());
  EXPECT_FALSE(read_npy(folder.string()).has_value());
  EXPECT_FALSE(write_npy((folder / "no" / "b.npy").string(), tensor).has_value());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace kiln::io
