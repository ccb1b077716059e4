// `kiln prune`: a matrix in a .npy file to its kept half and its metadata. The work is in sparse/.
#include <algorithm>
#include <array>

#include "driver/commands.h"
#include "io/npy.h"
#include "sparse/sparse.h"
#include "support/escape.h"

namespace kiln::driver {

namespace {

// What sparse matrix instructions multiply.
constexpr std::array kTypes = {DType::kF16,  DType::kBF16, DType::kF32, DType::kTF32,
                               DType::kE4M3, DType::kE5M2, DType::kS8,  DType::kU8};

enum class Form : std::uint8_t { kBytes, kWords };

struct Plan {
  Form form = Form::kBytes;
  std::optional<DType> type;  // --type
};

struct Pruned {
  Tensor dense;
  sparse::Compressed parts;  // metadata in the form that was asked for
  std::int64_t dropped = 0;  // non-zeros
};

std::string type_names() {
  return join(kTypes, ", ", [](DType dtype) { return std::string(name(dtype)); });
}

bool is_sparse_type(DType dtype) {
  return std::find(kTypes.begin(), kTypes.end(), dtype) != kTypes.end();
}

std::string_view name_of(sparse::Pattern pattern) {
  return pattern == sparse::Pattern::k2of4 ? "2:4" : "1:2";
}

Checked<void> check_outputs(const PruneOptions& options, Diagnostics& diags) {
  const std::pair<std::string_view, std::string_view> outputs[] = {
      {"-o", options.packed}, {"--metadata", options.metadata}, {"--dense", options.dense}};
  for (const auto& [option, path] : outputs) {
    for (const auto& [before, same] : outputs) {
      if (before == option) break;
      if (path.empty() || path != same) continue;
      return diags.report<diag::PruneSameFile>({}, before, option, path)
          .help("give each its own name")
          .emit();
    }
  }
  return {};
}

Checked<Plan> read_plan(const PruneOptions& options, Diagnostics& diags) {
  const auto outputs = check_outputs(options, diags);
  if (!outputs) return Unexpected{outputs.error()};
  Plan plan;
  if (options.form != "u8" && options.form != "u32") {
    return diags.report<diag::OptionChoice>({}, "--form", options.form, "u8, u32").emit();
  }
  plan.form = options.form == "u8" ? Form::kBytes : Form::kWords;
  if (options.type.empty()) return plan;
  plan.type = dtype_from_name(options.type);
  if (plan.type && is_sparse_type(*plan.type)) return plan;
  return diags.report<diag::OptionChoice>({}, "--type", options.type, type_names()).emit();
}

// The file's array as a matrix of a type that matrix units take sparse.
Checked<Tensor> matrix_of(io::NpyArray array, const Plan& plan, const std::string& file,
                          Diagnostics& diags) {
  if (array.tensor.shape.size() != 2) {
    return diags.report<diag::PruneRank>({}, file, shape_text(array.tensor.shape))
        .help("K is the last dimension: reshape it to [M, K]")
        .emit();
  }
  const std::string held = format("`{}`", array.descr);
  if (plan.type) {
    auto tensor = io::as_dtype(std::move(array), *plan.type);
    if (tensor) return std::move(*tensor);
    return diags.report<diag::PruneType>({}, file, held, name(*plan.type))
        .help("`--type` says what the bits are, it converts nothing: convert the array first")
        .emit();
  }
  if (is_sparse_type(array.tensor.dtype) && !array.is_void) return std::move(array.tensor);
  std::string help = "convert it to one of " + type_names();
  if (array.opaque) help = "`--type` says what the bits are: " + type_names();
  return diags.report<diag::PruneElement>({}, file, held).help("{}", help).emit();
}

std::int64_t non_zeros(const Tensor& tensor) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.elements()); ++i) {
    count += tensor.get(i) != 0;
  }
  return count;
}

// Metadata is whole bytes, or whole words of whole blocks of rows; so must the matrix be.
Checked<void> check_extents(const Tensor& matrix, Form form, const std::string& file,
                            Diagnostics& diags) {
  const int byte = sparse::columns_of_byte(sparse::hardware_pattern(matrix.dtype));
  const bool words = form == Form::kWords;
  const bool pairs = words && sparse::hardware_words(matrix.dtype) == sparse::Words::kRowPairs;
  const std::int64_t multiples[] = {pairs ? 16 : 1, words ? 4 * byte : byte};
  for (const std::size_t d : {1U, 0U}) {
    const std::int64_t extent = matrix.shape[d];
    const std::int64_t multiple = multiples[d];
    if (extent % multiple == 0) continue;
    return diags.report<diag::PruneExtent>({}, file, extent, d == 0 ? "rows" : "columns", multiple)
        .help("pad it with zeros to {}", (extent / multiple + 1) * multiple)
        .emit();
  }
  return {};
}

// The only fault left once the extents are right.
io::Exit refuse_group(const sparse::Fault& fault, const Tensor& matrix, const std::string& file,
                      Diagnostics& diags) {
  const sparse::Pattern pattern = sparse::hardware_pattern(matrix.dtype);
  KILN_CHECK(fault.kind == sparse::Fault::Kind::kTooMany, "{}", sparse::text(fault, pattern));
  diags
      .report<diag::PruneGroup>({}, fault.row, fault.col,
                                fault.col + sparse::group_size(pattern) - 1, file, fault.found,
                                fault.allowed)
      .help("without `--no-prune` the smallest of them are set to 0")
      .emit();
  return io::Exit::kWrong;
}

Result<Pruned, sparse::Fault> prune_matrix(const Tensor& matrix, const PruneOptions& options,
                                           Form form) {
  const sparse::Pattern pattern = sparse::hardware_pattern(matrix.dtype);
  Pruned out{.dense = matrix, .parts = {}};
  if (!options.keep) {
    auto pruned = sparse::prune(matrix, pattern);
    if (!pruned) return Unexpected{pruned.error()};
    out.dense = std::move(*pruned);
  }
  auto parts = sparse::compress(out.dense, pattern);
  if (!parts) return Unexpected{parts.error()};
  out.parts = std::move(*parts);
  out.dropped = non_zeros(matrix) - non_zeros(out.dense);
  if (form == Form::kBytes) return out;
  auto words = sparse::prepack(out.parts.metadata, matrix.dtype);
  if (!words) return Unexpected{words.error()};
  out.parts.metadata = std::move(*words);
  return out;
}

io::Exit write_parts(const PruneOptions& options, const Pruned& pruned, io::Console& console) {
  const std::pair<std::string_view, const Tensor*> parts[] = {
      {options.dense, &pruned.dense},
      {options.packed, &pruned.parts.packed},
      {options.metadata, &pruned.parts.metadata}};
  for (const auto& [path, tensor] : parts) {
    if (path.empty()) continue;
    const Result<void> written = io::write_npy(std::string(path), *tensor);
    if (!written) return io::environment_failed(console, written.error()).error;
  }
  const Tensor& dense = pruned.dense;
  console.out << format("{}: {} {} at {}, {} of {} elements set to 0\n", shown(options.file),
                        name(dense.dtype), shape_text(dense.shape),
                        name_of(sparse::hardware_pattern(dense.dtype)), pruned.dropped,
                        dense.elements());
  for (const auto& [path, tensor] : parts) {
    if (path.empty()) continue;
    console.out << format("{}: {} {}\n", shown(path), name(tensor->dtype),
                          shape_text(tensor->shape));
  }
  return io::Exit::kFine;
}

// Reads, prunes, writes; what is wrong with the data goes to `diags`.
io::Exit prune_file(const PruneOptions& options, Diagnostics& diags, io::Console& console) {
  const Checked<Plan> plan = read_plan(options, diags);
  if (!plan) return io::Exit::kUsage;
  auto array = io::read_npy(options.file);
  if (!array) return io::environment_failed(console, array.error()).error;
  const Checked<Tensor> matrix = matrix_of(std::move(*array), *plan, options.file, diags);
  if (!matrix) return io::Exit::kUsage;
  if (!check_extents(*matrix, plan->form, options.file, diags)) return io::Exit::kUsage;
  const auto pruned = prune_matrix(*matrix, options, plan->form);
  if (!pruned) return refuse_group(pruned.error(), *matrix, options.file, diags);
  return write_parts(options, *pruned, console);
}

}  // namespace

io::Exit prune(const PruneOptions& options, io::Console& console) {
  Diagnostics diags;
  const io::Exit exit = prune_file(options, diags, console);
  io::show(console, diags, {});
  return exit;
}

}  // namespace kiln::driver
