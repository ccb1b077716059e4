#include "sema/attribute.h"

#include <algorithm>
#include <set>

#include "sema/entry_check.h"
#include "sema/expression.h"
#include "target/registers.h"

namespace kiln::sema {

namespace {

using Attribute = ast::Attribute;

// What the attribute says, what contradicts it, and the way out.
void contradict_attribute(Sema& sema, const Attribute& attribute, const std::string& says,
                          const std::string& against, const std::string& help) {
  (void)sema.diags
      .report<diag::LaunchAttribute>(attribute.span, spelling(attribute.kind), says, against)
      .help_if(help)
      .emit();
}

// Whether the attribute says number `i`: it is there, and not left to the compiler by `_`.
bool says_number(const Sema& sema, const Attribute& attribute, std::size_t i) {
  return i < attribute.args.size() && sema.ast.as<ast::WildcardExpr>(attribute.args[i]) == nullptr;
}

// Number `i` of the attribute; 0 where it does not say it.
std::optional<std::int64_t> attribute_number(Sema& sema, const Attribute& attribute, std::size_t i,
                                             std::string_view what) {
  if (!says_number(sema, attribute, i)) return 0;
  return evaluate_constant(sema, attribute.args[i], what);
}

// The largest number of threads of a block that the kernel is compiled for.
bool enter_threads(Sema& sema, const Attribute& attribute, ir::Parallel& launch,
                   std::int64_t bound) {
  const std::int64_t most = sema.arch.threads_per_block_max;
  const std::int64_t least = says_number(sema, attribute, 0) ? 1 : 0;
  if (bound < least || bound > most) {
    contradict_attribute(sema, attribute, format("{} threads", bound),
                         format("a block of {} has 1 to {}", sema.arch.name, most),
                         "`_` stands for as many as the block has");
    return false;
  }
  const auto threads = launch.threads.constant();
  if (bound != 0 && threads && *threads > bound) {
    contradict_attribute(sema, attribute, format("{} threads", bound),
                         format("the block has {}", *threads),
                         "`_` stands for as many as the block has");
    return false;
  }
  if (bound != 0 && !threads) {
    require(sema, {launch.threads, ir::Relation::kLessEqual, bound,
                   "the block has more threads than `[[launch_bounds]]` says", attribute.span});
  }
  launch.threads_bound = bound;
  return true;
}

// How many blocks are to fit a multiprocessor.
void enter_blocks(Sema& sema, const Attribute& attribute, ir::Parallel& launch,
                  std::int64_t blocks) {
  const std::int64_t threads =
      std::max(launch.threads_bound, launch.threads.constant().value_or(1));
  const std::int64_t warps = (threads + target::kWarpLanes - 1) / target::kWarpLanes;
  const std::int64_t fit = std::min<std::int64_t>(
      sema.arch.blocks_per_sm_max, sema.arch.threads_per_sm_max / (warps * target::kWarpLanes));
  const std::int64_t least = says_number(sema, attribute, 1) ? 1 : 0;
  if (blocks < least || blocks > fit) {
    contradict_attribute(
        sema, attribute, format("{} blocks", blocks),
        format("of {} threads 1 to {} fit a multiprocessor of {}", threads, fit, sema.arch.name),
        "");
    return;
  }
  launch.blocks_min = blocks;
}

void enter_launch_bounds(Sema& sema, const Attribute& attribute, ir::Parallel& launch) {
  constexpr std::size_t kNumbersMax = 2;
  if (attribute.args.size() == kNumbersMax + 1) {
    refuse(sema, attribute.span, "a number of blocks of a cluster in `[[launch_bounds]]`");
    return;
  }
  if (attribute.args.empty() || attribute.args.size() > kNumbersMax) {
    contradict_attribute(sema, attribute, format("{} numbers", attribute.args.size()),
                         "it takes the threads of a block and the blocks of a multiprocessor",
                         "write `[[launch_bounds(_, 2)]]`");
    return;
  }
  const auto bound = attribute_number(sema, attribute, 0, "the number of threads");
  const auto blocks = attribute_number(sema, attribute, 1, "the number of blocks");
  if (!bound || !blocks || !enter_threads(sema, attribute, launch, *bound)) return;
  enter_blocks(sema, attribute, launch, *blocks);
}

void enter_maxnreg(Sema& sema, const Attribute& attribute, ir::Parallel& launch) {
  const bool one = attribute.args.size() == 1;
  if (!one) {
    contradict_attribute(sema, attribute, format("{} numbers", attribute.args.size()),
                         "it takes the registers of a thread", "write `[[maxnreg(64)]]`");
    return;
  }
  const auto registers = evaluate_constant(sema, attribute.args[0], "the number of registers");
  if (!registers) return;
  const std::int64_t threads = launch.threads.constant().value_or(1);
  const std::int64_t warps = (threads + target::kWarpLanes - 1) / target::kWarpLanes;
  const std::int64_t most =
      std::min<std::int64_t>(sema.arch.registers_per_thread_max,
                             sema.arch.registers_per_block_max / (warps * target::kWarpLanes));
  if (*registers < 1 || *registers > most) {
    contradict_attribute(
        sema, attribute, format("{} registers", *registers),
        format("a thread of {} in a block of {} has 1 to {}", sema.arch.name, threads, most), "");
    return;
  }
  launch.registers_max = *registers;
}

// The largest number that `[[order]]` takes.
constexpr std::int64_t kTogetherMost = 65535;

// `[[order(columns, 8)]]`: tiles of 8 columns after each other; `rows` the same of rows; `hilbert`: along a curve.
void enter_order(Sema& sema, const Attribute& attribute, ir::Parallel& launch) {
  const auto* word =
      attribute.args.empty() ? nullptr : sema.ast.as<ast::NameExpr>(attribute.args[0]);
  const bool is_curve = word != nullptr && word->name == "hilbert";
  const bool is_word = word != nullptr && (word->name == "columns" || word->name == "rows");
  if ((!is_word && !is_curve) || attribute.args.size() != (is_curve ? 1 : 2)) {
    contradict_attribute(sema, attribute, "in which order tiles are taken",
                         "that is `columns` or `rows` and a number of them, or `hilbert`",
                         "write `[[order(columns, 8)]]` or `[[order(hilbert)]]`");
    return;
  }
  if (launch.vars.size() != 2) {
    contradict_attribute(sema, attribute, "in which order tiles of rows and columns are taken",
                         format("this `parallel` has {} variables", launch.vars.size()),
                         "write `parallel {row, column} by [..] : block`");
    return;
  }
  if (is_curve) {
    launch.hilbert = true;
    return;
  }
  const auto number = evaluate_constant(sema, attribute.args[1], "the number of rows or columns");
  if (!number) return;
  if (*number < 1 || *number > kTogetherMost) {
    contradict_attribute(sema, attribute, format("{} {}", *number, word->name),
                         format("there are 1 to {}", kTogetherMost), "");
    return;
  }
  (word->name == "columns" ? launch.columns_together : launch.rows_together) = *number;
}

// CUDA takes `__maxnreg__` or `__launch_bounds__`. Blocks that are to fit a multiprocessor together are
// a limit to the registers of their threads, and so the smaller one of both says all.
void leave_registers(const Sema& sema, ir::Parallel& launch) {
  if (launch.registers_max == 0 || launch.blocks_min == 0) return;
  const std::int64_t threads =
      std::max(launch.threads_bound, launch.threads.constant().value_or(1));
  launch.registers_max = std::min<std::int64_t>(
      launch.registers_max, target::registers_beside(sema.arch, threads, launch.blocks_min));
}

// The program sets the registers of threads itself, which begins with what one block for each
// multiprocessor leaves them.
bool sets_registers(const ir::Function& function, const ir::Parallel& launch) {
  bool found = false;
  ir::walk(function, launch.body, [&](ir::OpId id) {
    found = found || function.ops[id].kind() == ir::OpKind::kRegisters;
  });
  return found;
}

}  // namespace

void report_attributes_inside(Sema& sema, const std::vector<ast::Attribute>& attributes) {
  for (const Attribute& attribute : attributes) {
    (void)sema.diags
        .report<diag::AttributePlace>(attribute.span, spelling(attribute.kind), "a launch",
                                      "a `parallel` inside of one")
        .help("write it in front of the outermost `parallel`")
        .emit();
  }
}

void enter_attributes(Sema& sema, const std::vector<ast::Attribute>& attributes, ir::OpId launch) {
  std::set<Attribute::Kind> before;
  for (const Attribute& attribute : attributes) {
    if (attribute.kind == Attribute::Kind::kThreads) continue;
    if (attribute.kind == Attribute::Kind::kSchedule) {
      (void)sema.diags
          .report<diag::AttributePlace>(attribute.span, spelling(attribute.kind), "a product",
                                        "a `parallel`")
          .help("write it in front of the `mma`")
          .emit();
      continue;
    }
    if (attribute.kind == Attribute::Kind::kPipeline) {
      (void)sema.diags
          .report<diag::AttributePlace>(attribute.span, spelling(attribute.kind), "a loop",
                                        "a `parallel`")
          .help("write it in front of a `foreach`")
          .emit();
      continue;
    }
    auto& data = std::get<ir::Parallel>(sema.function.ops[launch].data);
    const bool again = before.contains(attribute.kind);
    if (attribute.kind == Attribute::Kind::kPersistent) {
      data.persistent = true;
      continue;
    }
    if (attribute.kind == Attribute::Kind::kOrder && !again) {
      before.insert(attribute.kind);
      enter_order(sema, attribute, data);
      continue;
    }
    if (again) {
      const bool orders = attribute.kind == Attribute::Kind::kOrder;
      contradict_attribute(sema, attribute, orders ? "in which order tiles are taken" : "a limit",
                           "so does another one beside it", "keep one of them");
      return;
    }
    before.insert(attribute.kind);
    if (sets_registers(sema.function, data) &&
        (attribute.kind == Attribute::Kind::kMaxnreg || attribute.args.size() > 1)) {
      contradict_attribute(sema, attribute, "how many registers a thread may have",
                           "the kernel sets them by `setreg_dec` and `setreg_inc`",
                           "keep one of them");
      return;
    }
    if (attribute.kind == Attribute::Kind::kLaunchBounds)
      enter_launch_bounds(sema, attribute, data);
    if (attribute.kind == Attribute::Kind::kMaxnreg) enter_maxnreg(sema, attribute, data);
  }
  leave_registers(sema, std::get<ir::Parallel>(sema.function.ops[launch].data));
}

namespace {

// `[[pipeline(3, producer)]]` and `[[pipeline(producer)]]`: the word stands last.
bool names_producer(const Sema& sema, const Attribute& attribute) {
  if (attribute.args.empty()) return false;
  const auto* name = sema.ast.as<ast::NameExpr>(attribute.args.back());
  return name != nullptr && name->name == "producer";
}

// The number of stages that the attribute asks for: kStagesChosen without one; nothing after a report.
std::optional<std::int64_t> stages_of(Sema& sema, const Attribute& attribute) {
  const std::size_t numbers = attribute.args.size() - (names_producer(sema, attribute) ? 1 : 0);
  if (numbers == 0) return ir::kStagesChosen;
  if (numbers > 1) {
    contradict_attribute(sema, attribute, "more than a number of stages",
                         "what may stand behind it is `producer`",
                         "write `[[pipeline(3)]]` or `[[pipeline(3, producer)]]`");
    return std::nullopt;
  }
  const auto stages = evaluate_constant(sema, attribute.args[0], "the number of stages");
  if (!stages) return std::nullopt;
  if (*stages >= 2 && *stages <= ir::kStagesMax) return stages;
  (void)sema.diags.report<diag::PipelineStages>(attribute.span, *stages, ir::kStagesMax)
      .help("`[[pipeline]]` alone leaves the number to the compiler")
      .emit();
  return std::nullopt;
}

}  // namespace

PipelineWish pipeline_wish(Sema& sema, const ast::ForeachStmt& stmt, std::size_t loops) {
  PipelineWish out;
  for (const Attribute& attribute : stmt.attributes) {
    const bool in_kernel = sema.place.in_kernel && attribute.kind == Attribute::Kind::kPipeline;
    if (!in_kernel || loops != 1) {
      (void)sema.diags
          .report<diag::AttributePlace>(
              attribute.span, spelling(attribute.kind),
              attribute.kind != Attribute::Kind::kPipeline ? "a launch" : "a loop of a kernel",
              loops != 1  ? "several loops"
              : in_kernel ? "a loop"
                          : "a `foreach`")
          .help_if(loops != 1 ? "write the loops one inside of the other" : "")
          .emit();
      continue;
    }
    if (out.stages != 0) {
      contradict_attribute(sema, attribute, "how the loop's copies are started",
                           "so does another one beside it", "keep one of them");
      continue;
    }
    out = {stages_of(sema, attribute).value_or(0), names_producer(sema, attribute)};
  }
  return out;
}

}  // namespace kiln::sema
