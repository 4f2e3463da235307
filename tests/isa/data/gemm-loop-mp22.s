	.text
	.protected	_Z4gemmPKtS0_Pf
	.globl	_Z4gemmPKtS0_Pf
	.p2align	8
	.type	_Z4gemmPKtS0_Pf,@function
_Z4gemmPKtS0_Pf:
		[N-sD---]		FOP.MOV R0, SH23
		[N-sD---]		FOP.MOV R13, SH24
BB0_1:
		[N-wD--o]		DMA.LD.B128 R[1:4], SH[16:17], R0, 4, 1, 1, chrnt=l2_l3, slc=new, persist=0, stride_add_first=0
		[N-wD--s]		LDMA.WR.B128.BST1 R[1:4], R13, X4, 0, BURST_STRIDE=16
		[N--D--s]		AP.BARRIER LM4
		[N-sD---]		BIT.LUT.AND R9, R13, C45, R0
BB0_2:
		[N--Ds--]		LDMA.RD.B32.BST1 R1, R13, _, 0, BURST_STRIDE=4
		[N--Ds--]		LDMA.RD.B32.BST1 R9, R13, _, 16, BURST_STRIDE=4
		[Ns-Dw--]		MMA.323216 R14[4:2][2:1].f32, R1[2:1][1:1].f16.row, R9[1:1][2:1].f16.col, 0
		[Ns-Dw--]		MMA.323216 R14[4:2][2:1].f32, R9[2:1][1:1].f16.row, R1[1:1][2:1].f16.col, 0
		[N-wD---]		INT.ADD R13, R13, SH25
		[N-wDw--]		INT.BYP.TG p0, R13.u32, SH26.u32
		[Nw-D---]		CTRL.BR.ALLP0T BB0_2
		[N--D--s]		AP.BARRIER LM4
		[N-wDw--]		INT.BYP.TNE p0, R0.u32, SH27.u32
		[Nw-D---]		CTRL.BR.ALLP0T BB0_1
		[N-wD--o]		DMA.ST.B32 R14, SH[18:19], R0, 4, 1, 1, chrnt=l2_l3, slc=new, persist=0, stride_add_first=0
		[N-wD---]		CTRL.END
.Lfunc_end0:
	.size	_Z4gemmPKtS0_Pf, .Lfunc_end0-_Z4gemmPKtS0_Pf
	.mtgpu_metadata.start
---
mtgpu.kernels:
  - .arch_id:        220
    .args:           []
    .has_barrier:    true
    .name:           _Z4gemmPKtS0_Pf
    .private_memory_size: 8
    .shared_memory_size: 0
    .temp_reg_count: 22
mtgpu.version:
  - 1
  - 0
...

	.mtgpu_metadata.end
