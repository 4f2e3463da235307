	.text
	.protected	_Z5demo1Pf
	.globl	_Z5demo1Pf
	.p2align	8
	.type	_Z5demo1Pf,@function
_Z5demo1Pf:
		[N-sD---]		FOP.MOV R1, SH23
		[N-wD--o]		DMA.LD.B32 R2, SH[16:17], R1, 4, 1, 1, chrnt=l2_l3, slc=new, persist=0, stride_add_first=0
		[NwsD---]		INT.BYP I[0:1].s64, R[1:2].s64
		[NswD---]		INT.ADD R[1:2].s64, R[3:4].s64, I[0:1].s64
		[N-wDw--]		INT.BYP.TG p0, R2.u32, SH24.u32
		[NswD---]	EX	COND.ST.P0 1, 1
		[Nw-D---]		CTRL.BR.ALLPEF BB0_2
BB0_1:
		[N-sD---]		BIT.ROT.LSR AR0, SH24, R1
		[Nw-D---]		BIT.LSL.OR R2, R2, C45, AR0
		[N-wD--s]		LDMA.WR.B128.BST2 R[1:4], R0, X4, 0, BURST_STRIDE=16
		[N--D--s]		AP.BARRIER LM4
BB0_2:
		[N-sD---]	EX	COND.END.ALWAYS 1
		[N-wD---]		CTRL.END
.Lfunc_end0:
	.size	_Z5demo1Pf, .Lfunc_end0-_Z5demo1Pf
	.type	llvm.musa.kernel._Z5demo1Pf.sm,@object
	.local	llvm.musa.kernel._Z5demo1Pf.sm
	.comm	llvm.musa.kernel._Z5demo1Pf.sm,4864,1
	.addrsig
	.mtgpu_metadata.start
---
mtgpu.kernels:
  - .arch_id:        220
    .args:           []
    .attr_reg_count: 1
    .has_barrier:    true
    .internal_reg_count: 2
    .name:           _Z5demo1Pf
    .private_memory_size: 0
    .shared_memory_size: 4884
    .shared_reg_count: 25
    .temp_reg_count: 5
mtgpu.version:
  - 1
  - 0
...

	.mtgpu_metadata.end
