#include "gemm/contract.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "ir/reflect.h"
#include "support/format.h"
#include "support/tensor.h"

namespace kiln::gemm {

namespace {

constexpr std::string_view kBatch = "BATCH";
constexpr std::string_view kGroups = "G";
constexpr std::string_view kTilesText = "cdiv(M, 128)";  // of kGroupRows rows
static_assert(kGroupRows == 128);
constexpr std::int64_t kLineBytes = 128;  // padded rows are so many times as long

// A tensor by its name. Without `rows` and `cols` it may have any shape.
struct TensorRow {
  std::string_view name;
  Role role;
  std::string_view rows = {};
  std::string_view cols = {};
  std::string_view leading = {};  // may stand for `cols`
  std::string_view count = {};    // in front of `rows`
};

struct Binder {
  const ir::Function& function;
  const Problem& problem;
  Contract contract = {};
  std::string mistake = {};  // the first

  void wrong(std::string text) {
    if (mistake.empty()) mistake = std::move(text);
  }
  void bind_vars();
  void bind_tensor(std::size_t param, const TensorRow& row);
  void bind_scalar(const ir::Param& param);
  void bind_params();
  void check_type(const ir::Param& param, const TensorRow& row);
  void check_shape(const ir::Param& param, const TensorRow& row);
  void check_region(ir::RegionId region);
  void check_presence();

  [[nodiscard]] std::array<TensorRow, 13> rows() const;
  [[nodiscard]] std::optional<std::int64_t> dimension(std::string_view name) const;
  [[nodiscard]] std::vector<std::int64_t> strides(Role role, const Bound& bound) const;
  [[nodiscard]] bool has(Role role) const;
};

std::array<TensorRow, 13> Binder::rows() const {
  TensorRow a = {"a", Role::kA, "M", "K", "LDA"};
  if (problem.a_sparse) a = {"packed", Role::kA, "M", "P", "LDA"};
  TensorRow b = {"b", Role::kB, "N", "K", "LDB"};
  if (!problem.a_along_k) std::swap(a.rows, a.cols);
  if (!problem.b_along_k) std::swap(b.rows, b.cols);
  TensorRow bias = {"bias", Role::kBias, {}, "N"};
  TensorRow c = {"c", Role::kC, "M", "N", "LDC"};
  if (problem.groups > 0 && problem.grouping == Grouping::kAlongK) {
    c.count = kGroups;
  } else if (problem.groups > 0) {
    b.count = bias.count = kGroups;
  }
  return {a,
          b,
          c,
          TensorRow{"residual", Role::kResidual, "M", "N", "LDR"},
          bias,
          TensorRow{"a_scale", Role::kScaleA},
          TensorRow{"b_scale", Role::kScaleB},
          TensorRow{"metadata", Role::kMetadata, "M", "W", {}},
          TensorRow{"group_of_tile", Role::kGroupOfTile, {}, kTilesText},
          TensorRow{"rows_of_group", Role::kRowsOfGroup, {}, kGroups},
          TensorRow{"a_pad", Role::kWorkspace, "M", "KP", {}},
          TensorRow{"b_pad", Role::kWorkspace, "N", "KP", {}},
          TensorRow{"partial", Role::kWorkspace}};
}

std::optional<std::int64_t> Binder::dimension(std::string_view name) const {
  const std::int64_t line = kLineBytes / size_bytes(problem.a);
  const std::pair<std::string_view, std::int64_t> known[] = {
      {"M", problem.m},
      {"N", problem.n},
      {"K", problem.k},
      {kBatch, problem.batch},
      {kGroups, problem.groups},
      {"KB", scale_blocks(problem.k)},
      {"NB", scale_blocks(problem.n)},
      {"KP", (problem.k + line - 1) / line * line},
      {"P", problem.k / 2},
      {"W", problem.k / kMetadataWord},
      {"LDA", problem.a_spacing.row},
      {"LDB", problem.b_spacing.row},
      {"LDC", problem.c_spacing.row},
      {"LDR", problem.residual_spacing.row}};
  for (const auto& [each, value] : known) {
    if (each == name) return value;
  }
  return std::nullopt;
}

void Binder::bind_vars() {
  contract.vars.resize(function.vars.size());
  for (std::uint32_t v = 0; v < function.vars.size(); ++v) {
    const ir::Var& var = function.vars[ir::VarId{v}];
    if (!ir::known_at_launch(var.kind)) continue;
    const auto value = dimension(var.name);
    if (!value) {
      wrong(
          format("dimension `{}` is none of M, N, K, G, KB, KP, NB, P, W, BATCH, LDA, LDB, LDC, "
                 "LDR",
                 var.name));
    }
    contract.vars[v] = value.value_or(0);
    contract.batched = contract.batched || var.name == kBatch;
  }
}

// Types of the problem; scale factors are f32, metadata u32, numbers of groups and of their rows
// s32, the workspace's elements any.
void Binder::check_type(const ir::Param& param, const TensorRow& row) {
  const DType dtype = function.view_type(param.value).dtype;
  DType wanted = problem.c;
  if (row.role == Role::kWorkspace) wanted = dtype;
  if (row.role == Role::kA) wanted = problem.a;
  if (row.role == Role::kB) wanted = problem.b;
  if (row.role == Role::kScaleA || row.role == Role::kScaleB) wanted = DType::kF32;
  if (row.role == Role::kMetadata) wanted = DType::kU32;
  if (row.role == Role::kGroupOfTile || row.role == Role::kRowsOfGroup) wanted = DType::kS32;
  if (dtype != wanted) {
    wrong(format("`{}` is of {}, the problem has {}", param.name, kiln::name(dtype),
                 kiln::name(wanted)));
  }
}

void Binder::check_shape(const ir::Param& param, const TensorRow& row) {
  std::vector<std::string> dims;
  for (const ir::Expr& extent : function.view_type(param.value).shape) {
    dims.push_back(function.text(extent));
  }
  const std::string declared = "[" + join(dims, ", ", [](const auto& d) { return d; }) + "]";
  if (!dims.empty() && dims.front() == kBatch) dims.erase(dims.begin());
  if (row.cols.empty()) return;
  std::vector<std::string_view> wanted;
  for (const std::string_view each : {row.count, row.rows, row.cols}) {
    if (!each.empty()) wanted.push_back(each);
  }
  if (!dims.empty() && dims.back() == row.leading) dims.back() = row.cols;
  if (std::ranges::equal(dims, wanted)) return;
  wrong(format("`{}` is {}, the problem has [{}]", param.name, declared,
               join(wanted, ", ", [](const auto& d) { return d; })));
}

// Where the rows and the matrices really are.
std::vector<std::int64_t> Binder::strides(Role role, const Bound& bound) const {
  const std::size_t rank = bound.shape.size();
  std::vector<std::int64_t> out(rank == 0 ? 0 : rank - 1);
  std::int64_t step = 1;
  for (std::size_t d = rank; d-- > 1;) out[d - 1] = step *= bound.shape[d];
  const std::pair<Role, Spacing> spaced[] = {{Role::kA, problem.a_spacing},
                                             {Role::kB, problem.b_spacing},
                                             {Role::kC, problem.c_spacing},
                                             {Role::kResidual, problem.residual_spacing}};
  for (const auto& [each, spacing] : spaced) {
    if (each != role || out.empty()) continue;
    out.back() = spacing.row;
    if (out.size() == 2) out.front() = spacing.batch;
  }
  return out;
}

void Binder::bind_tensor(std::size_t index, const TensorRow& row) {
  const ir::Param& param = function.params[index];
  check_type(param, row);
  check_shape(param, row);
  if (!param.is_global) wrong(format("`{}` is not `global`", param.name));
  Bound& bound = contract.params[index].emplace(Bound{.role = row.role});
  const ir::ViewType& type = function.view_type(param.value);
  for (const ir::Expr& extent : type.shape) bound.shape.push_back(extent.evaluate(contract.vars));
  if (!elements_fit(type.dtype, bound.shape)) wrong(format("`{}` is too large", param.name));
  bound.strides = strides(row.role, bound);
}

void Binder::bind_scalar(const ir::Param& param) {
  if (param.var.valid()) return;  // bound as a variable
  if (param.name == "alpha") contract.alpha = param.value;
  if (param.name == "beta") contract.beta = param.value;
  if (param.name != "alpha" && param.name != "beta") {
    wrong(format("scalar `{}` is neither alpha nor beta", param.name));
  }
}

void Binder::bind_params() {
  contract.params.resize(function.params.size());
  const auto known = rows();
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const ir::Param& param = function.params[i];
    if (!std::holds_alternative<ir::ViewType>(function.type(param.value))) {
      bind_scalar(param);
      continue;
    }
    const auto row = std::ranges::find(known, param.name, &TensorRow::name);
    if (row != known.end()) {
      bind_tensor(i, *row);
    } else {
      wrong(format("tensor `{}` is none of {}", param.name,
                   join(known, ", ", [](const TensorRow& r) { return r.name; })));
    }
  }
}

// alpha and beta are known when a plan starts, long after the host part ran.
void Binder::check_region(ir::RegionId region) {
  for (const ir::OpId id : function.regions[region].ops) {
    const ir::Op& op = function.ops[id];
    ir::for_each_operand(op, [&](std::string_view, ir::ValueId value) {
      if (!value.valid() || (value != contract.alpha && value != contract.beta)) return;
      wrong(format("the host part computes with `{}`", function.values[value].name));
    });
    if (std::holds_alternative<ir::Parallel>(op.data)) continue;
    for (const ir::RegionId inner : ir::regions_of(op)) check_region(inner);
  }
}

bool Binder::has(Role role) const {
  return std::ranges::any_of(contract.params,
                             [&](const auto& bound) { return bound && bound->role == role; });
}

// What the problem has, the kernel has, and the other way round.
void Binder::check_presence() {
  const Epilogue& epilogue = problem.epilogue;
  const bool by_rows = problem.grouping != Grouping::kByTile;
  if (epilogue.has_alpha && !contract.alpha.valid()) wrong("it has no scalar `alpha`");
  if (epilogue.has_beta && !contract.beta.valid()) wrong("it has no scalar `beta`");
  const std::pair<Role, bool> wanted[] = {{Role::kA, true},
                                          {Role::kB, true},
                                          {Role::kC, true},
                                          {Role::kBias, epilogue.has_bias},
                                          {Role::kResidual, epilogue.has_residual},
                                          {Role::kScaleA, problem.block_scales},
                                          {Role::kScaleB, problem.block_scales},
                                          {Role::kMetadata, problem.a_sparse},
                                          {Role::kGroupOfTile, problem.groups > 0 && !by_rows},
                                          {Role::kRowsOfGroup, by_rows}};
  const auto known = rows();
  for (const auto& [role, present] : wanted) {
    if (has(role) == present) continue;
    const std::string_view name = std::ranges::find(known, role, &TensorRow::role)->name;
    wrong(format("it has {} tensor `{}`, the problem has {}", present ? "no" : "a", name,
                 present ? "one" : "none"));
  }
}

}  // namespace

Result<Contract> bind_contract(const ir::Function& function, const Problem& problem) {
  Binder binder{.function = function, .problem = problem};
  binder.bind_vars();
  binder.bind_params();
  binder.check_region(function.body);
  binder.check_presence();
  if (binder.mistake.empty()) return std::move(binder.contract);
  return Unexpected{Error{"the kernel does not fit", text(problem), binder.mistake}};
}

}  // namespace kiln::gemm
