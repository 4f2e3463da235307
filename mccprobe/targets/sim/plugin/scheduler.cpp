// How the simulated fault gets into the real machine scheduler, and mcc's two scheduler names.
//
// The pass "Machine Instruction Scheduler" stays LLVM's own, so opt-bisect counts and skips it as
// ever. At the end of one function's scheduling it calls ScheduleDAGInstrs::finalizeSchedule();
// that is where the fault is planted. To be the one who is called, the constructor of the pass,
// which runs after all -mllvm options are parsed, is replaced in the PassRegistry: if the flag is
// on and the user named no scheduler, it selects FaultScheduler through the public -misched option.
#include "fault.h"

#include "llvm/CodeGen/MachineScheduler.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/InitializePasses.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

static cl::opt<bool> InternalRegsRA("mtgpu-enable-internal-regs-ra", cl::Hidden, cl::init(false),
                                    cl::desc("[mccprobe sim] plants a SIMULATED fault in machine-scheduler"));
// Given by the driver to device jobs only: host objects must not change with the flag, and nothing
// in an x86-64 module says whether it was compiled for the simulated device.
static cl::opt<bool> DeviceJob("mccprobe-sim-device-job", cl::Hidden, cl::init(false),
                               cl::desc("[mccprobe sim] this is a device compile"));

namespace {

constexpr const char *FaultSchedulerName = "mccprobe-sim-internal-regs-ra";

/// The scheduler that would run without the plugin: the target's own, else the generic one.
ScheduleDAGInstrs *makeTargetScheduler(MachineSchedContext *Context) {
  if (ScheduleDAGInstrs *Own = Context->PassConfig->createMachineScheduler(Context))
    return Own;
  return createGenericSchedLive(Context);
}

/// Forwards everything to the target's scheduler, so that its schedule is byte for byte the normal
/// one, and plants the fault when the last region of a kernel is done.
class FaultScheduler : public ScheduleDAGInstrs {
public:
  explicit FaultScheduler(MachineSchedContext *Context)
      : ScheduleDAGInstrs(*Context->MF, Context->MLI), Context(Context), Inner(makeTargetScheduler(Context)) {}

  bool doMBBSchedRegionsTopDown() const override { return Inner->doMBBSchedRegionsTopDown(); }
  void startBlock(MachineBasicBlock *Block) override { Inner->startBlock(Block); }
  void finishBlock() override { Inner->finishBlock(); }
  void enterRegion(MachineBasicBlock *Block, MachineBasicBlock::iterator Begin,
                   MachineBasicBlock::iterator End, unsigned Count) override {
    Inner->enterRegion(Block, Begin, End, Count);
  }
  void exitRegion() override { Inner->exitRegion(); }
  void schedule() override { Inner->schedule(); }
  void finalizeSchedule() override {
    Inner->finalizeSchedule();
    if (mccsim::isKernel(MF.getFunction()))
      mccsim::plantFaults(MF, *Context->LIS, *Context->MLI, *Context->MDT);
  }
  void dumpNode(const SUnit &Unit) const override { Inner->dumpNode(Unit); }
  void dump() const override { Inner->dump(); }
  std::string getGraphNodeLabel(const SUnit *Unit) const override { return Inner->getGraphNodeLabel(Unit); }
  std::string getDAGName() const override { return Inner->getDAGName(); }

private:
  MachineSchedContext *Context;
  std::unique_ptr<ScheduleDAGInstrs> Inner;
};

/// Naming this scheduler by hand must not smuggle the fault in: it needs the flag and a device job.
ScheduleDAGInstrs *makeFaultScheduler(MachineSchedContext *Context) {
  if (!InternalRegsRA || !DeviceJob)
    return makeTargetScheduler(Context);
  return new FaultScheduler(Context);
}

MachineSchedRegistry FaultEntry(FaultSchedulerName, "[mccprobe sim] internal-regs-ra fault", makeFaultScheduler);
MachineSchedRegistry MaxILPEntry("mtgpu-max-ilp", "[mccprobe sim] plain scheduling", makeTargetScheduler);
MachineSchedRegistry MaxOccupancyEntry("mtgpu-max-occupancy", "[mccprobe sim] plain scheduling",
                                       makeTargetScheduler);

/// -enable-misched=false: the pass runs, and is counted, but does nothing; then nothing is armed.
bool schedulingIsSwitchedOff() {
  auto &Options = cl::getRegisteredOptions();
  auto Found = Options.find("enable-misched");
  if (Found == Options.end() || Found->second->getNumOccurrences() == 0)
    return false;
  return !static_cast<cl::opt<bool> *>(Found->second)->getValue();
}

PassInfo::NormalCtor_t OriginalConstructor;

Pass *constructMachineScheduler() {
  static bool Armed = false; // one cc1 process may build more than one pipeline
  if (InternalRegsRA && DeviceJob && !Armed && !schedulingIsSwitchedOff()) {
    auto &Options = cl::getRegisteredOptions();
    auto Scheduler = Options.find("misched");
    if (Scheduler != Options.end() && Scheduler->second->getNumOccurrences() == 0) {
      Armed = !Scheduler->second->addOccurrence(0, "misched", FaultSchedulerName);
      if (Armed)
        errs() << "mccprobe-sim: SIMULATED FAULT armed in machine-scheduler (mtgpu-enable-internal-regs-ra)\n";
    }
  }
  return OriginalConstructor();
}

struct Installer {
  Installer() {
    PassRegistry &Registry = *PassRegistry::getPassRegistry();
    initializeCodeGen(Registry);
    const PassInfo *Info = Registry.getPassInfo(&MachineSchedulerID);
    if (!Info) {
      errs() << "mccprobe-sim: this LLVM has no machine-scheduler pass; the fault cannot be armed\n";
      return;
    }
    OriginalConstructor = Info->getNormalCtor();
    const_cast<PassInfo *>(Info)->setNormalCtor(constructMachineScheduler);
  }
} Install;

} // namespace
