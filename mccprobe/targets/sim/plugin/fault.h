// The simulated fault of mccprobe's stand-in SDK.
#pragma once

namespace llvm {
class Function;
class LiveIntervals;
class MachineDominatorTree;
class MachineFunction;
class MachineLoopInfo;
} // namespace llvm

namespace mccsim {

/// True for a __global__ function of a device module.
bool isKernel(const llvm::Function &F);

/// Lets one multiply-add (MCCSIM_FAULTS=all: every eligible one) read a factor from the wrong
/// register. Live intervals are repaired. Does nothing if no instruction is eligible.
void plantFaults(llvm::MachineFunction &MF, llvm::LiveIntervals &LIS, const llvm::MachineLoopInfo &Loops,
                 const llvm::MachineDominatorTree &Dominators);

} // namespace mccsim
