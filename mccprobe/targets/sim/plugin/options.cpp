// The -mllvm surface of mcc on stock clang 14: names and value types only.
//
// Names come from public build lines of MUSA projects (FlagTree, MATE, sgl-kernel, tilelang_musa,
// sglang, torch_musa) and from the article that mccprobe follows. Nothing here has an effect: a command line
// written for mcc is accepted, and the object stays the same. The one flag with an effect,
// -mtgpu-enable-internal-regs-ra, is in fault.cpp.
#include "llvm/Support/CommandLine.h"

using namespace llvm;

namespace {

#define MCCSIM_BOOL(Variable, Name)                                                                          \
  cl::opt<bool> Variable(Name, cl::Hidden, cl::init(false), cl::desc("[mccprobe sim] accepted, no effect"))
#define MCCSIM_UINT(Variable, Name)                                                                          \
  cl::opt<unsigned> Variable(Name, cl::Hidden, cl::init(0), cl::desc("[mccprobe sim] accepted, no effect"))

MCCSIM_BOOL(IfConvert, "mtgpu-if-convert");
MCCSIM_BOOL(CombineInstrWithBurst, "mtgpu-combine-instr-with-burst");
MCCSIM_BOOL(CombineFopInstr, "mtgpu-combine-fop-instr");
MCCSIM_BOOL(TinyOffsetHint, "mtgpu-tiny-offset-hint");
MCCSIM_BOOL(EnableConstCalc, "mtgpu-enable-const-calc");
MCCSIM_BOOL(AllocSharedMemoryFromZero, "mtgpu-alloc-shared-memory-from-zero");
MCCSIM_BOOL(EnablePostRASched, "mtgpu-enable-postra-sched");
MCCSIM_BOOL(EnableMaxILPStrategy, "mtgpu-enable-max-ilp-scheduling-strategy");
MCCSIM_BOOL(EnchancedMinRegSchedule, "mtgpu-enchanced-minreg-schedule"); // spelt so in the real tool
MCCSIM_BOOL(EnableCSE, "mtgpu-enable-cse");
MCCSIM_BOOL(EnablePreISelSinking, "mtgpu-enable-preisel-sinking");
MCCSIM_BOOL(AttrAllocFirst, "mtgpu-attr-alloc-first");
MCCSIM_BOOL(EnableIntHidden, "mtgpu-enable-int-hidden");
MCCSIM_BOOL(UseSL, "mtgpu-use-sl");
MCCSIM_BOOL(ReorderScheduling, "mtgpu-reorder-scheduling");
MCCSIM_BOOL(LoadStoreOpt, "mtgpu-load-store-opt");
MCCSIM_BOOL(FoldGlobalLdst, "mtgpu-fold-global-ldst");
MCCSIM_BOOL(LoadClusterMutation, "mtgpu-load-cluster-mutation");
MCCSIM_BOOL(StoreClusterMutation, "mtgpu-store-cluster-mutation");
MCCSIM_BOOL(MemorySchedMutation, "mtgpu-memory-sched-mutation");
MCCSIM_BOOL(InternalizeSymbols, "mtgpu-internalize-symbols");
MCCSIM_BOOL(EnableLdmaIndex, "enable-ldma-index");
MCCSIM_BOOL(RecomputeSlotIndex, "misched-recompute-slotindex");
MCCSIM_UINT(OptLevel, "mtgpu-opt-level");
MCCSIM_UINT(MaxRegCount, "mtgpu-maxregcnt");
MCCSIM_UINT(DwordsOfLoadInMutation, "num-dwords-of-load-in-mutation");

// The article's bypass switches: "-X=false" must be accepted, and the fault must stay with it.
cl::opt<bool> UserFop("internal-opt-user-fop", cl::Hidden, cl::init(true),
                      cl::desc("[mccprobe sim] accepted, no effect"));
cl::opt<bool> UserInt("internal-opt-user-int", cl::Hidden, cl::init(true),
                      cl::desc("[mccprobe sim] accepted, no effect"));
cl::opt<bool> UserBit("internal-opt-user-bit", cl::Hidden, cl::init(true),
                      cl::desc("[mccprobe sim] accepted, no effect"));

enum class Fence { Strict, Mixed, Relaxed, GraphColor };
cl::opt<Fence> FenceSetting("FenceSetting", cl::Hidden, cl::init(Fence::Strict),
                            cl::desc("[mccprobe sim] accepted, no effect"),
                            cl::values(clEnumValN(Fence::Strict, "strict", "[mccprobe sim]"),
                                       clEnumValN(Fence::Mixed, "mixed", "[mccprobe sim]"),
                                       clEnumValN(Fence::Relaxed, "relaxed", "[mccprobe sim]"),
                                       clEnumValN(Fence::GraphColor, "graph_color", "[mccprobe sim]")));

} // namespace
