// The final kernel without its epilogue (section 13): how long the main loop takes alone. In the article this
// took 42 ms of 100 and so showed that the epilogue, not the arithmetic, was slow.
//
// Wrong by intention: nothing is written to C.
#define GEMM_COMPUTE_ONLY 1
#include "../gemm/gemm.mu"
