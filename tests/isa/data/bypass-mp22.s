	.text
	.protected	_Z3badPf
	.globl	_Z3badPf
	.type	_Z3badPf,@function
_Z3badPf:
		[N-sD---]		INT.BYP I[0:1].s64, R[1:2].s64
		[Ns-Dw--]		MMA.323216 R14[4:2][2:1].f32, I0.f16.row, R9[1:1][2:1].f16.col, 0
		[Nw-D---]		CTRL.BR.ALLPEF BB0_2
BB0_1:
		[N-wD---]		INT.ADD R3, R3, I1
BB0_2:
		[N-wD---]		CTRL.END
.Lfunc_end0:
	.size	_Z3badPf, .Lfunc_end0-_Z3badPf
	.type	llvm.musa.kernel._Z3badPf.sm,@object
	.local	llvm.musa.kernel._Z3badPf.sm
	.comm	llvm.musa.kernel._Z3badPf.sm,1024,1
	.mtgpu_metadata.start
---
mtgpu.kernels:
  - .arch_id:        220
    .args:           []
    .name:           _Z3badPf
    .private_memory_size: 2080
    .shared_memory_size: 1020
    .temp_reg_count: 20
mtgpu.version:
  - 1
  - 0
...

	.mtgpu_metadata.end
