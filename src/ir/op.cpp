#include "ir/op.h"

namespace kiln::ir {

bool is_pure(OpKind kind) {
  switch (kind) {
    case OpKind::kConst:
    case OpKind::kIndex:
    case OpKind::kUnary:
    case OpKind::kBinary:
    case OpKind::kCast:
    case OpKind::kChoose: return true;
    case OpKind::kParallel:
    case OpKind::kFor:
    case OpKind::kIf:
    case OpKind::kOnce:
    case OpKind::kReturn:
    case OpKind::kLoop:
    case OpKind::kBreak:
    case OpKind::kContinue:
    case OpKind::kYield:
    case OpKind::kInthreads:
    case OpKind::kAlias:
    case OpKind::kSplat:
    case OpKind::kEvent:
    case OpKind::kTrigger:
    case OpKind::kEventWait:
    case OpKind::kFuture:
    case OpKind::kFutureWait:
    case OpKind::kExchange:
    case OpKind::kBulkWait:
    case OpKind::kRegisters:
    case OpKind::kAlloc:
    case OpKind::kSubview:
    case OpKind::kCopy:
    case OpKind::kCopyWait:
    case OpKind::kBarrier:
    case OpKind::kRead:
    case OpKind::kWrite:
    case OpKind::kFill:
    case OpKind::kLoad:
    case OpKind::kMma:
    case OpKind::kStore:
    case OpKind::kScale:
    case OpKind::kApply:
    case OpKind::kElement:
    case OpKind::kSetElement:
    case OpKind::kMmaFence:
    case OpKind::kMmaCommit:
    case OpKind::kMmaWait:
    case OpKind::kProxyFence:
    case OpKind::kBind:
    case OpKind::kGet:
    case OpKind::kSet:
    case OpKind::kAssert: break;
  }
  return false;
}

}  // namespace kiln::ir
