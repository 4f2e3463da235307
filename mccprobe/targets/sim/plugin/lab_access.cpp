// Instrumentation for `mccprobe check --lab`: a pass of its own plugin, so that a build without it is not changed.
//
// Before the vectorizers, every load and store that may reach device memory gets a call of the runtime, which
// returns the address to use, and each barrier or WMMA operation is told where it stands. What a thread keeps in
// its own frame and what the SDK's headers do for themselves is left alone.
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/Support/Path.h"

#include <map>
#include <tuple>

using namespace llvm;

namespace {

// As in runtime/lab.h.
enum : uint32_t { Write = 1, Atomic = 2, Volatile = 4 };
constexpr uint64_t MaxAccess = 64; // bytes; what is longer is a range

bool isSdkHeader(const DILocation &Place) {
  const StringRef Name = sys::path::filename(Place.getFilename());
  return Name == "mma.h" || Name == "musa_runtime.h" || Name == "musa_fp16.h" || Name == "mccprobe_types.h";
}

/// Where an instruction stands for the user: the innermost place that is in no header of the SDK.
struct Place {
  const DILocation *Inner = nullptr, *Outer = nullptr; // Outer: the line of the kernel itself
  bool InWmma = false, InAtomic = false;
  uint32_t Chain = 0; // equal for copies of one instruction that unrolling made, not for two calls of a function
};

Place placeOf(const Instruction &I) {
  Place P;
  for (const DILocation *L = I.getDebugLoc().get(); L; L = L->getInlinedAt()) {
    P.Chain = P.Chain * 0x9e3779b1u + L->getLine() * 1009u + L->getColumn();
    P.Outer = L;
    if (P.Inner)
      continue;
    if (!isSdkHeader(*L)) {
      P.Inner = L;
      continue;
    }
    P.InWmma |= sys::path::filename(L->getFilename()) == "mma.h";
    P.InAtomic |= L->getScope()->getSubprogram()->getName().startswith("__mccsim_fetch_add");
  }
  return P;
}

class Instrumenter {
public:
  explicit Instrumenter(Function &F) : F(F), M(*F.getParent()), Context(F.getContext()) {
    BytePointer = Type::getInt8PtrTy(Context);
    Word = Type::getInt32Ty(Context);
    Long = Type::getInt64Ty(Context);
    // file, function, outer file, object, its bytes, line, column, outer line, bytes, flags, chain, alignment,
    // runtime's own
    SiteType = StructType::get(Context, {BytePointer, BytePointer, BytePointer, BytePointer, Long, Word, Word, Word,
                                         Word, Word, Word, Word, BytePointer});
  }

  bool run() {
    SmallVector<Instruction *, 64> Work;
    for (BasicBlock &Block : F)
      for (Instruction &I : Block)
        if (isa<LoadInst>(I) || isa<StoreInst>(I) || isa<CallInst>(I) || isa<AtomicRMWInst>(I) ||
            isa<AtomicCmpXchgInst>(I))
          Work.push_back(&I);
    joinHalves(Work);
    bool Changed = tellKernel();
    for (Instruction *I : Work)
      Changed |= visit(*I);
    return Changed;
  }

private:
  /// Where a kernel stands, for what is said of it before it runs: a variable that the runtime knows by its name.
  bool tellKernel() {
    const DISubprogram *Program = F.getSubprogram();
    if (F.getCallingConv() != CallingConv::Win64 || !Program)
      return false;
    Place P;
    P.Inner = DILocation::get(Context, Program->getLine(), 0, F.getSubprogram());
    GlobalVariable *Known = site(P, nullptr, 0, 0, 1);
    Known->setLinkage(GlobalValue::WeakODRLinkage);
    Known->setName("__mccsim_lab_kernel_" + F.getName());
    return true;
  }

  /// x86-64 passes a float4 in two registers, so that one 16-byte access of the source can have become two of 8
  /// bytes. They are known by their one place and by the alignment of the whole.
  void joinHalves(const SmallVectorImpl<Instruction *> &Work) {
    const DataLayout &Layout = M.getDataLayout();
    for (std::size_t First = 0; First < Work.size(); ++First) {
      Instruction &A = *Work[First];
      if (!isHalf(A) || getLoadStoreAlignment(&A).value() < 16 || !A.getDebugLoc())
        continue;
      for (std::size_t Next = First + 1; Next < Work.size() && Next < First + 8; ++Next) {
        Instruction &B = *Work[Next];
        if (B.getOpcode() != A.getOpcode() || B.getParent() != A.getParent() || !isHalf(B) ||
            B.getDebugLoc() != A.getDebugLoc())
          continue;
        const Value *At = getLoadStorePointerOperand(&A), *Upper = getLoadStorePointerOperand(&B);
        if (isPointerOffset(At, Upper, Layout).getValueOr(0) != 8)
          continue;
        SecondHalf[&A] = &B;
        Joined.insert(&B);
        break;
      }
    }
  }
  uint64_t bytesOf(Instruction &I) const {
    const bool Plain = isa<LoadInst>(I) || isa<StoreInst>(I);
    return Plain ? M.getDataLayout().getTypeStoreSize(getLoadStoreType(&I)).getKnownMinSize() : 0;
  }

  bool isHalf(Instruction &I) const { return bytesOf(I) == 8 && !getLoadStoreType(&I)->isDoubleTy(); }

  bool visit(Instruction &I) {
    if (Joined.count(&I))
      return true;
    if (auto *Load = dyn_cast<LoadInst>(&I))
      return access(I, Load->getPointerOperandIndex(), Load->getType(), Load->isVolatile() ? Volatile : 0);
    if (auto *Store = dyn_cast<StoreInst>(&I))
      return access(I, Store->getPointerOperandIndex(), Store->getValueOperand()->getType(),
                    Write | (Store->isVolatile() ? Volatile : 0));
    if (auto *Rmw = dyn_cast<AtomicRMWInst>(&I))
      return access(I, Rmw->getPointerOperandIndex(), Rmw->getType(), Write | Atomic);
    if (auto *Exchange = dyn_cast<AtomicCmpXchgInst>(&I))
      return access(I, Exchange->getPointerOperandIndex(), Exchange->getCompareOperand()->getType(), Write | Atomic);
    if (auto *Transfer = dyn_cast<MemTransferInst>(&I)) {
      const bool From = range(I, 1, *Transfer->getLength(), 0);
      return range(I, 0, *Transfer->getLength(), Write) || From;
    }
    if (auto *Set = dyn_cast<MemSetInst>(&I))
      return range(I, 0, *Set->getLength(), Write);
    const Function *Callee = cast<CallInst>(I).getCalledFunction();
    if (!Callee || !Callee->getName().startswith("__mccsim_"))
      return false;
    // A barrier or a WMMA operation: its place goes into a variable, so that the call stays as it is.
    const Place P = placeOf(I);
    IRBuilder<> Builder(&I);
    auto *Here = M.getOrInsertGlobal("__mccsim_lab_site", BytePointer);
    Builder.CreateStore(ConstantExpr::getBitCast(site(P, nullptr, 0, 0, 1), BytePointer), Here);
    return true;
  }

  /// False for what is known to be the thread's own, a built-in variable, or the emulator's data.
  bool mayBeDeviceMemory(const Value &Pointer, const Place &P, const Value *&Object) const {
    if (P.InWmma)
      return false;
    Object = getUnderlyingObject(&Pointer, 0);
    SmallVector<const Value *, 4> Objects;
    getUnderlyingObjects(&Pointer, Objects, nullptr, 0);
    if (any_of(Objects, [](const Value *V) { return isa<AllocaInst>(V) || isOperandTile(*V); }))
      return false;
    const auto *Global = dyn_cast<GlobalVariable>(Object);
    if (!Global)
      return true;
    if (Global->isConstant() && Global->hasLocalLinkage())
      return false; // a literal
    return !Global->isDeclaration() || !isBuiltIn(Global->getName());
  }
  /// What load_matrix_sync returned: merged instructions of mma_sync have lost the line that tells.
  static bool isOperandTile(const Value &V) {
    const auto *Call = dyn_cast<CallInst>(&V);
    return Call && Call->getCalledFunction() && Call->getCalledFunction()->getName() == "__mccsim_wmma_load";
  }
  static bool isBuiltIn(StringRef Name) {
    return Name == "threadIdx" || Name == "blockIdx" || Name == "blockDim" || Name == "gridDim" ||
           Name.startswith("__mccsim_");
  }

  bool access(Instruction &I, unsigned Operand, Type *Accessed, uint32_t Flags) {
    return access(I, Operand, M.getDataLayout().getTypeStoreSize(Accessed).getKnownMinSize(), Flags);
  }
  bool access(Instruction &I, unsigned Operand, uint64_t Bytes, uint32_t Flags) {
    const Place P = placeOf(I);
    const Value *Object = nullptr;
    Value *Pointer = I.getOperand(Operand);
    if (!mayBeDeviceMemory(*Pointer, P, Object))
      return false;
    if (P.InAtomic)
      Flags |= Atomic;
    Instruction *Second = SecondHalf.lookup(&I);
    Bytes += Second ? bytesOf(*Second) : 0;
    auto Callee = M.getOrInsertFunction("__mccsim_lab_access", BytePointer, BytePointer, BytePointer);
    IRBuilder<> Builder(&I);
    Value *Site = ConstantExpr::getBitCast(site(P, Object, Bytes, Flags, takeAlignment(I, Operand)), BytePointer);
    Value *Use = Builder.CreateCall(Callee, {Builder.CreatePointerCast(Pointer, BytePointer), Site});
    I.setOperand(Operand, Builder.CreatePointerCast(Use, Pointer->getType()));
    if (Second) {
      Value *Upper = Builder.CreateConstGEP1_64(Builder.getInt8Ty(), Use, Bytes - bytesOf(*Second));
      Second->setOperand(Operand, Builder.CreatePointerCast(Upper, Second->getOperand(Operand)->getType()));
    }
    return true;
  }

  /// The alignment that the access takes for granted. It is taken away, so that what is not aligned is told and does
  /// not end the run.
  static uint64_t takeAlignment(Instruction &I, unsigned Operand) {
    uint64_t Known = 1;
    if (auto *Load = dyn_cast<LoadInst>(&I)) {
      Known = Load->getAlign().value();
      Load->setAlignment(Align(1));
    } else if (auto *Store = dyn_cast<StoreInst>(&I)) {
      Known = Store->getAlign().value();
      Store->setAlignment(Align(1));
    } else if (auto *Transfer = dyn_cast<MemTransferInst>(&I)) {
      const MaybeAlign Given = Operand == 0 ? Transfer->getDestAlign() : Transfer->getSourceAlign();
      Known = Given.valueOrOne().value();
      Operand == 0 ? Transfer->setDestAlignment(Align(1)) : Transfer->setSourceAlignment(Align(1));
    } else if (auto *Set = dyn_cast<MemSetInst>(&I)) {
      Known = Set->getDestAlign().valueOrOne().value();
      Set->setDestAlignment(Align(1));
    }
    return Known;
  }

  /// A copy or a fill: mostly a struct such as float4, whose length is known.
  bool range(Instruction &I, unsigned Argument, Value &Length, uint32_t Flags) {
    if (const auto *Known = dyn_cast<ConstantInt>(&Length))
      if (Known->getZExtValue() <= MaxAccess)
        return access(I, Argument, Known->getZExtValue(), Flags);
    const Place P = placeOf(I);
    const Value *Object = nullptr;
    Value *Pointer = cast<CallInst>(I).getArgOperand(Argument);
    if (!mayBeDeviceMemory(*Pointer, P, Object))
      return false;
    auto Callee = M.getOrInsertFunction("__mccsim_lab_range", BytePointer, BytePointer, BytePointer, Long);
    IRBuilder<> Builder(&I);
    Value *Site =
        ConstantExpr::getBitCast(site(P, Object, 0, Flags, takeAlignment(I, Argument)), BytePointer);
    Value *Bytes = Builder.CreateZExtOrTrunc(&Length, Long);
    Value *Use = Builder.CreateCall(Callee, {Builder.CreatePointerCast(Pointer, BytePointer), Site, Bytes});
    cast<CallInst>(I).setArgOperand(Argument, Builder.CreatePointerCast(Use, Pointer->getType()));
    return true;
  }

  Constant *text(StringRef Text) {
    GlobalVariable *&Known = Texts[Text.str()];
    if (!Known) {
      Constant *Value = ConstantDataArray::getString(Context, Text);
      Known = new GlobalVariable(M, Value->getType(), true, GlobalValue::PrivateLinkage, Value, "__mccsim_lab_text");
    }
    return ConstantExpr::getBitCast(Known, BytePointer);
  }

  static std::string pathOf(const DILocation &L) {
    SmallString<128> Path(L.getFilename());
    if (!sys::path::is_absolute(Path)) {
      Path = L.getDirectory();
      sys::path::append(Path, L.getFilename());
    }
    sys::path::remove_dots(Path, true);
    return Path.str().str();
  }

  GlobalVariable *site(const Place &P, const Value *Object, uint64_t Bytes, uint32_t Flags, uint64_t Alignment) {
    Constant *Base = ConstantPointerNull::get(Type::getInt8PtrTy(Context));
    uint64_t ObjectBytes = 0;
    const auto *Global = Object ? dyn_cast<GlobalVariable>(Object) : nullptr;
    if (Global && !Global->isDeclaration()) {
      ObjectBytes = M.getDataLayout().getTypeAllocSize(Global->getValueType());
      Base = ConstantExpr::getPointerCast(const_cast<GlobalVariable *>(Global), BytePointer);
    }
    const bool Inlined = P.Outer && P.Outer != P.Inner;
    const StringRef Function = P.Inner ? P.Inner->getScope()->getSubprogram()->getName() : F.getName();
    const auto number = [&](uint64_t Value) { return ConstantInt::get(Word, Value); };
    Constant *Value = ConstantStruct::get(
        SiteType, {text(P.Inner ? pathOf(*P.Inner) : ""), text(Function), text(Inlined ? pathOf(*P.Outer) : ""), Base,
                   ConstantInt::get(Long, ObjectBytes), number(P.Inner ? P.Inner->getLine() : 0),
                   number(P.Inner ? P.Inner->getColumn() : 0), number(Inlined ? P.Outer->getLine() : 0), number(Bytes),
                   number(Flags), number(P.Chain), number(Alignment),
                   ConstantPointerNull::get(Type::getInt8PtrTy(Context))});
    return new GlobalVariable(M, SiteType, false, GlobalValue::PrivateLinkage, Value, "__mccsim_lab_place");
  }

  Function &F;
  Module &M;
  LLVMContext &Context;
  PointerType *BytePointer;
  IntegerType *Word, *Long;
  StructType *SiteType;
  std::map<std::string, GlobalVariable *> Texts;
  DenseMap<Instruction *, Instruction *> SecondHalf;
  SmallPtrSet<Instruction *, 16> Joined;
};

struct LabPass : PassInfoMixin<LabPass> {
  PreservedAnalyses run(Function &F, FunctionAnalysisManager &) {
    return Instrumenter(F).run() ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
  static bool isRequired() { return true; } // also at -O0, and whatever -opt-bisect-limit says
};

} // namespace

extern "C" ::llvm::PassPluginLibraryInfo LLVM_ATTRIBUTE_WEAK llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "mccsim-lab", "1", [](PassBuilder &Builder) {
            Builder.registerVectorizerStartEPCallback(
                [](FunctionPassManager &Passes, OptimizationLevel) { Passes.addPass(LabPass()); });
          }};
}
