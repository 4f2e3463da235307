// Which instruction is corrupted, how, and what is written down about it.
#include "fault.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/CodeGen/LiveIntervals.h"
#include "llvm/CodeGen/MachineDominators.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineLoopInfo.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>
#include <tuple>

using namespace llvm;

namespace {

/// A multiply-add and the one change that would corrupt it.
struct Candidate {
  MachineInstr *Instr;
  unsigned Operand;    // index of the factor to replace
  Register WrongSource;
  unsigned LoopDepth;
  bool EveryIteration; // its block is on every path through its loop
  bool Packed;
};

/// The factors of an FMA by form: 213 is op1*op2+op3, 231 is op2*op3+op1, 132 is op1*op3+op2
/// (Intel SDM, VFMADD). `Replace` is never operand 1, which is tied to the result; `By` is the
/// other factor, or 0 where that one is in memory.
struct Factors {
  unsigned Replace = 0;
  unsigned By = 0;
};

/// Reads the form from the name, e.g. VFMADD231PSYr. Masked and intrinsic ("_Int") forms are left out.
bool parseFma(StringRef Name, Factors &Result, bool &Packed) {
  if (!Name.consume_front("VFMADD"))
    return false;
  const bool Is213 = Name.consume_front("213");
  const bool Is231 = !Is213 && Name.consume_front("231");
  if (!Is213 && !Is231 && !Name.consume_front("132"))
    return false;
  Packed = Name.startswith("P");
  if (!Name.consume_front("PS") && !Name.consume_front("PD") && !Name.consume_front("SS") &&
      !Name.consume_front("SD"))
    return false;
  if (!Name.consume_front("Z256") && !Name.consume_front("Z128") && !Name.consume_front("Z"))
    Name.consume_front("Y");
  const bool FromMemory = Name == "m";
  if (Name != "r" && !FromMemory)
    return false;
  if (Is213)
    Result = {2, 1};
  else if (Is231)
    Result = {2, FromMemory ? 0u : 3u};
  else if (!FromMemory)
    Result = {3, 1};
  else
    return false; // 132 from memory: the only register factor is the tied one
  return true;
}

bool isPlainVirtual(const MachineOperand &Operand) {
  return Operand.isReg() && Operand.getReg().isVirtual() && !Operand.getSubReg() && !Operand.isUndef();
}

/// A factor of a neighbouring FMA that is alive at `Instr` but not read by it.
Register wrongSourceNearby(const MachineInstr &Instr, unsigned Operand, const LiveIntervals &LIS,
                           const MachineRegisterInfo &MRI, const TargetInstrInfo &TII) {
  const Register Right = Instr.getOperand(Operand).getReg();
  const SlotIndex Here = LIS.getInstructionIndex(Instr);
  for (const MachineInstr &Other : *Instr.getParent()) {
    Factors F;
    bool Packed;
    if (&Other == &Instr || !parseFma(TII.getName(Other.getOpcode()), F, Packed))
      continue;
    const MachineOperand &Source = Other.getOperand(F.Replace);
    if (!isPlainVirtual(Source) || MRI.getRegClass(Source.getReg()) != MRI.getRegClass(Right) ||
        Instr.readsVirtualRegister(Source.getReg()) || Source.getReg() == Right)
      continue;
    if (LIS.getInterval(Source.getReg()).Query(Here).valueIn())
      return Source.getReg();
  }
  return Register();
}

/// All eligible multiply-adds in layout order.
SmallVector<Candidate, 32> findCandidates(MachineFunction &MF, const LiveIntervals &LIS,
                                          const MachineLoopInfo &Loops, const MachineDominatorTree &Dominators) {
  const TargetInstrInfo &TII = *MF.getSubtarget().getInstrInfo();
  const MachineRegisterInfo &MRI = MF.getRegInfo();
  SmallVector<Candidate, 32> Found;
  for (MachineBasicBlock &Block : MF) {
    const MachineLoop *Loop = Loops.getLoopFor(&Block);
    const MachineBasicBlock *Latch = Loop ? Loop->getLoopLatch() : nullptr;
    const bool EveryIteration = Latch && Dominators.dominates(&Block, Latch);
    for (MachineInstr &Instr : Block) {
      Factors F;
      bool Packed;
      if (!parseFma(TII.getName(Instr.getOpcode()), F, Packed) || !isPlainVirtual(Instr.getOperand(F.Replace)))
        continue;
      const Register Right = Instr.getOperand(F.Replace).getReg();
      Register Wrong;
      if (F.By && isPlainVirtual(Instr.getOperand(F.By)) && Instr.getOperand(F.By).getReg() != Right &&
          MRI.getRegClass(Instr.getOperand(F.By).getReg()) == MRI.getRegClass(Right))
        Wrong = Instr.getOperand(F.By).getReg(); // a*b+c becomes b*b+c: wrong, yet of the right size
      else
        Wrong = wrongSourceNearby(Instr, F.Replace, LIS, MRI, TII);
      if (Wrong)
        Found.push_back({&Instr, F.Replace, Wrong, Loops.getLoopDepth(&Block), EveryIteration, Packed});
    }
  }
  return Found;
}

std::string textOf(const MachineInstr &Instr) {
  std::string Text;
  raw_string_ostream Out(Text);
  Instr.print(Out, /*IsStandalone=*/true, /*SkipOpers=*/false, /*SkipDebugLoc=*/true, /*AddNewLine=*/false);
  return StringRef(Out.str()).trim().str();
}

/// One JSON line in $MCCSIM_FAULT_LOG; a single write, so that parallel compiles do not mix.
void logFault(const MachineInstr &Instr, unsigned Operand, StringRef Before, StringRef Opcode) {
  const char *Path = std::getenv("MCCSIM_FAULT_LOG");
  if (!Path || !*Path)
    return;
  std::string Line;
  raw_string_ostream Out(Line);
  Out << json::Value(json::Object{{"function", Instr.getMF()->getName()},
                                  {"block", Instr.getParent()->getNumber()},
                                  {"opcode", Opcode},
                                  {"operand", int64_t(Operand)},
                                  {"before", Before},
                                  {"after", textOf(Instr)}})
      << '\n';
  Out.flush();
  const int File = ::open(Path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (File < 0 || ::write(File, Line.data(), Line.size()) != ssize_t(Line.size()))
    errs() << "mccprobe-sim: cannot write the fault log " << Path << "\n";
  if (File >= 0)
    ::close(File);
}

void corrupt(const Candidate &C, LiveIntervals &LIS, MachineRegisterInfo &MRI, const TargetInstrInfo &TII) {
  MachineOperand &Operand = C.Instr->getOperand(C.Operand);
  const Register Right = Operand.getReg();
  const std::string Before = textOf(*C.Instr);
  // The scheduler works on LiveIntervals; stale kill flags would contradict them.
  MRI.clearKillFlags(Right);
  MRI.clearKillFlags(C.WrongSource);
  Operand.setReg(C.WrongSource);
  LiveInterval &Interval = LIS.getInterval(Right);
  if (LIS.shrinkToUses(&Interval)) { // the lost use may leave unconnected values behind
    SmallVector<LiveInterval *, 4> Split;
    LIS.splitSeparateComponents(Interval, Split);
  }
  logFault(*C.Instr, C.Operand, Before, TII.getName(C.Instr->getOpcode()));
}

} // namespace

// clang marks only __global__ functions (and main) norecurse before optimisation, keeps them out of
// local linkage, and device code cannot call them. A non-static __device__ function whose calls were
// all inlined can look the same after optimisation; such a leftover copy is never executed.
bool mccsim::isKernel(const Function &F) {
  if (F.hasLocalLinkage() || !F.getReturnType()->isVoidTy() || !F.hasFnAttribute(Attribute::NoRecurse) ||
      F.getName() == "main")
    return false;
  return none_of(F.users(), [&F](const User *U) {
    const auto *Call = dyn_cast<CallBase>(U);
    return Call && Call->getCalledOperand() == &F;
  });
}

void mccsim::plantFaults(MachineFunction &MF, LiveIntervals &LIS, const MachineLoopInfo &Loops,
                         const MachineDominatorTree &Dominators) {
  SmallVector<Candidate, 32> Found = findCandidates(MF, LIS, Loops, Dominators);
  if (Found.empty())
    return;
  MachineRegisterInfo &MRI = MF.getRegInfo();
  const TargetInstrInfo &TII = *MF.getSubtarget().getInstrInfo();
  const char *Mode = std::getenv("MCCSIM_FAULTS");
  if (Mode && StringRef(Mode) == "all") {
    // Earlier changes can end the life of a register picked for a later one: look again each time.
    for (const Candidate &C : Found)
      if (LIS.hasInterval(C.WrongSource) && C.Instr->getOperand(C.Operand).getReg() != C.WrongSource &&
          LIS.getInterval(C.WrongSource).Query(LIS.getInstructionIndex(*C.Instr)).valueIn())
        corrupt(C, LIS, MRI, TII);
    return;
  }
  // The one most surely executed: deepest loop, on every path through it, whole vectors, first in layout.
  const auto Rank = [](const Candidate &C) { return std::make_tuple(C.LoopDepth, C.EveryIteration, C.Packed); };
  const Candidate *Best = &Found.front();
  for (const Candidate &C : Found)
    if (Rank(C) > Rank(*Best))
      Best = &C;
  corrupt(*Best, LIS, MRI, TII);
}
