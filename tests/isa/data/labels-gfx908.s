; two kernels and a function with labels of every kind; no metadata, and `second` has no .type
.amdgcn_target "amdgcn-amd-amdhsa--gfx908"
.text
.globl first
.p2align 8
.type first,@function
first:
  s_load_dwordx2 s[2:3], s[0:1], 0x0
  v_lshlrev_b32 v2, 2, v0
label_1:
  v_mov_b32 v4, 1
  s_barrier
  s_cbranch_scc1 label_early
  s_endpgm
label_early:
  global_store_dword v2, v4, s[2:3]
  s_cbranch_scc0 label_1
  s_endpgm
.p2align 8
second:
  v_mov_b32 v1, 0
HOT_LOOP_START:
  v_add_u32 v1, 1, v1
  s_barrier
  s_cbranch_scc1 HOT_LOOP_START
  s_endpgm
.globl helper
.p2align 8
.type helper,@function
helper:
  v_mov_b32 v0, 1
.globl inner_entry
inner_entry:
  v_mov_b32 v1, 1
  s_setpc_b64 s[30:31]
.Lhelper_end:
.size helper, .Lhelper_end-helper

.rodata
table:
.long 7
.p2align 6
.amdhsa_kernel first
  .amdhsa_group_segment_fixed_size 64
  .amdhsa_next_free_vgpr 6
  .amdhsa_next_free_sgpr 5
.end_amdhsa_kernel
.amdhsa_kernel second
  .amdhsa_private_segment_fixed_size 16
  .amdhsa_next_free_vgpr 2
  .amdhsa_next_free_sgpr 4
.end_amdhsa_kernel
