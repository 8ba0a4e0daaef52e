// >>slots
// What the kernels in tools/shaders and those who call them agree on. Both include this room, so that it holds nothing
// but #defines that mean the same to C and GLSL.
//
//   GNI_P_   a word of the parameters: gni_job_call.param, GN_PARAM
//   GNI_S_   the number of a specialisation constant: gni_gpu_kernel.spec, constant_id
//   GNI_F_   a flag in one of them
//   GNI_T_   a gn_dtype
//   GNI_K_   how a kernel finds the elements of an operand
// _WORDS and _SPECS are how many there are.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#endif

// ---- dtypes

#define GNI_T_F32 0
#define GNI_T_F16 1
#define GNI_T_BF16 2
#define GNI_T_F64 3
#define GNI_T_I32 4
#define GNI_T_I64 5
#define GNI_T_U8 6
#define GNI_T_I8 7
#define GNI_T_U32 8
#define GNI_T_BOOL 9
#define GNI_T_C64 10
#define GNI_T_I16 12
#define GNI_T_U16 13
#define GNI_T_U64 14

// ---- programs: program.glsl, elementwise.glsl, reduce.glsl

#define GNI_K_SCALAR 0  // the same element for the whole group: no vector strides
#define GNI_K_VEC 1     // element = vector index, groups aligned
#define GNI_K_FLAT 2    // element = vector index, not aligned
#define GNI_K_DRAWN 3   // element = vector index: whether that number of the stream is below a limit
#define GNI_K_ROWVEC 4  // groups do not cross rows, elements neighbours, aligned
#define GNI_K_ROWREP 5  // groups do not cross rows, one element
#define GNI_K_ROWSTEP 6 // groups do not cross rows, any inner stride
#define GNI_K_ANY 7     // every element on its own
#define GNI_K_COLVEC 8  // tiles only: 4 rows of a column are neighbours, aligned
#define GNI_K_RE 9      // every element on its own: parts of complex numbers, read and written as numbers
#define GNI_K_IM 10

// See memory.glsl; of all kernels, set as their default value.
#define GNI_S_EXACT_HALVES 100
#define GNI_S_NARROW_STORES 101
#define GNI_S_FUSED 102

// Words that are specialisation constants of the same number as well.
#define GNI_P_PROGRAM_COUNTS 0    // inputs in bits 0-3, outputs 4-7, instructions 8-15, vector dimensions 16-19, scalar
                                  // ones 20-23, bit 24: some operand needs the vector coordinates
#define GNI_P_PROGRAM_IN_DTYPES 1 // 4 bits each
#define GNI_P_PROGRAM_IN_KINDS 2  // 4 bits each
#define GNI_P_PROGRAM_OUTPUTS 3   // dtypes from bit 0, kinds from bit 16, 4 bits each
#define GNI_P_PROGRAM_OUT_REGS 4  // registers, 8 bits each
#define GNI_P_PROGRAM_HOW 5       // elementwise: log2 of the groups of an invocation in bits 0-1, bit 4: tiles,
                                  // bit 5: elements of a group are 256 apart;
                                  // as WGSL, from bit 8 on 4 bits for each of the first 6 inputs: 1 + the output whose
                                  // buffer it has.
                                  // reductions: gni_reduction * 3 + domain in bits 0-7, bit 8: columns, 9-12: log2 of the
                                  // lanes of a team, bit 13: moments, 14, 15: divided, its root, 16-19: dtype of the result,
                                  // 20-21: log2 of the steps of a lane that are loaded at a time; as WGSL, bits 24 and 25:
                                  // partial results are written, are joined
#define GNI_P_PROGRAM_STEPS 6     // instructions, at most 24
// Others.
#define GNI_P_PROGRAM_KERNEL 32 // to 47: the kernel's own, below
#define GNI_P_PROGRAM_DIM 48    // 8 x (extent, multiplier, shift): vector dimensions, then scalar ones
#define GNI_P_PROGRAM_OP 72     // 12 x (base, 8 strides): inputs, then outputs from number 8 on. Drawn: -, block (two
                                // words), key (two), limit
#define GNI_P_PROGRAM_CONST 180 // 8 x 2
#define GNI_P_PROGRAM_WORDS 196

#define GNI_P_MAP_N 32       // elements
#define GNI_P_MAP_BLOCKS 33  // stretches, or tiles
#define GNI_P_MAP_ROW_DIM 34 // tiles: the dimension that the other operands run along,
#define GNI_P_MAP_ROWS 35    // its extent,
#define GNI_P_MAP_BETWEEN 36 // elements of the dimensions between it and the last one,
#define GNI_P_MAP_ACROSS 37  // tiles along the last dimension
#define GNI_P_MAP_DOWN 38    // and along the rows

#define GNI_F_REDUCE_MOMENTS 0x2000u
#define GNI_F_REDUCE_DIVIDE 0x4000u
#define GNI_F_REDUCE_ROOT 0x8000u
#define GNI_F_REDUCE_PARTIAL 0x1000000u
#define GNI_F_REDUCE_JOIN 0x2000000u
#define GNI_P_REDUCE_KEPT 32    // elements of the result
#define GNI_P_REDUCE_REDUCED 33 // elements that go into each
#define GNI_P_REDUCE_UNITS 34
#define GNI_P_REDUCE_CHUNK 35   // steps of a split: groups (rows) or elements (columns)
#define GNI_P_REDUCE_SPLITS 36  // of all dispatches of the job
#define GNI_P_REDUCE_SPLIT0 37  // of this one
#define GNI_P_REDUCE_INDEX0 38  // of the first reduced element
#define GNI_P_REDUCE_COUNTER0 39 // first of one counter per workgroup along x
#define GNI_P_REDUCE_APART 40    // of two outputs: elements from a result to the second one
#define GNI_P_REDUCE_SAMPLES 41  // of moments: steps that are looked at first
#define GNI_P_REDUCE_COUNT 42    // what the sum is divided by, a float or both words of a double
#define GNI_P_REDUCE_REST 44     // and the sum of squares

// ---- softmax.comp

#define GNI_S_SOFTMAX_KIND 0  // gni_softmax_kind
#define GNI_S_SOFTMAX_DTYPE 1 // of the input, and 16 times the output's
#define GNI_S_SOFTMAX_LOG_LANES 2
#define GNI_S_SOFTMAX_ALIGNED 3
#define GNI_F_SOFTMAX_IN_GROUPS 1u // rows of the input start at groups
#define GNI_F_SOFTMAX_OUT_GROUPS 2u
#define GNI_S_SOFTMAX_PHASE 4
#define GNI_F_SOFTMAX_MEASURES 1u // long rows
#define GNI_F_SOFTMAX_WRITES 2u

#define GNI_P_SOFTMAX_ROWS 0
#define GNI_P_SOFTMAX_N 1
#define GNI_P_SOFTMAX_ROW_STRIDE 2
#define GNI_P_SOFTMAX_IN_BASE 3
#define GNI_P_SOFTMAX_OUT_BASE 4
#define GNI_P_SOFTMAX_SPLITS 5
#define GNI_P_SOFTMAX_CHUNK 6 // groups of a split
#define GNI_P_SOFTMAX_WORDS 8

// ---- rows.comp

#define GNI_ROWS_SOFTMAX 0 // as gni_softmax_kind
#define GNI_ROWS_LOG_SOFTMAX 1
#define GNI_ROWS_LOGSUMEXP 2
#define GNI_ROWS_BACK_SOFTMAX 3
#define GNI_ROWS_BACK_LOG_SOFTMAX 4
#define GNI_ROWS_NORM 5
#define GNI_ROWS_RMS 6 // without a mean
#define GNI_ROWS_BACK_NORM 7
#define GNI_ROWS_BACK_RMS 8
#define GNI_ROWS_VARIANCE 9

#define GNI_S_ROWS_KIND 0   // the above
#define GNI_S_ROWS_DTYPES 1 // of input, gradient, output, weight and bias, 4 bits each
#define GNI_S_ROWS_LOG_LANES 2
#define GNI_S_ROWS_HOW 3
#define GNI_F_ROWS_GROUPS 1u        // rows start at groups
#define GNI_F_ROWS_WEIGHT_GROUPS 2u // weights do
#define GNI_F_ROWS_WEIGHT 4u
#define GNI_F_ROWS_BIAS 8u
#define GNI_F_ROWS_STRETCHES 16u // one weight for several places
#define GNI_F_ROWS_ROOT 32u      // of the variance
#define GNI_S_ROWS_SPECS 4

#define GNI_P_ROWS_ROWS 0
#define GNI_P_ROWS_N 1
#define GNI_P_ROWS_EPS 2       // of a variance: what the sum of squares is divided by
#define GNI_P_ROWS_PERIOD 3    // rows until weights come again,
#define GNI_P_ROWS_STRETCHES 4 // weights of a row
#define GNI_P_ROWS_INNER 5     // and places of a weight
#define GNI_P_ROWS_BASE 8      // of the operands, in elements
#define GNI_P_ROWS_OPERANDS 7  // x, gradient, weight, bias, mean, scale, result
#define GNI_P_ROWS_WORDS 16

// ---- recur.comp, recur_half.comp

#define GNI_S_RECUR_LSTM 0
#define GNI_S_RECUR_SPECS 1 // the others are recur_half.comp's
#define GNI_S_RECUR_BACK 1
#define GNI_S_RECUR_DTYPE 2
#define GNI_S_RECUR_SPLIT 3
#define GNI_S_RECUR_TILES 4
#define GNI_S_RECUR_AHEAD 5
#define GNI_S_RECUR_HALF_SPECS 6

#define GNI_P_RECUR_BATCH 0
#define GNI_P_RECUR_H 1
#define GNI_P_RECUR_FLAGS 2
#define GNI_P_RECUR_LAST 3 // where the last c is, or its derivative
#define GNI_P_RECUR_BASE 4 // of the 9 buffers, in elements
#define GNI_P_RECUR_WORDS 13
#define GNI_RECUR_KEEPS 1  // for a gradient
#define GNI_RECUR_LAST 2   // the last step; back: all are done
#define GNI_RECUR_BIAS 4
#define GNI_RECUR_FIRST 8

// ---- places.glsl: take.comp, scatter.comp

#define GNI_S_TAKE_INDEX_DTYPE 0
#define GNI_S_TAKE_UNIT 1 // log2 of its bytes
#define GNI_S_TAKE_ALONG 2
#define GNI_S_TAKE_SPECS 3

#define GNI_P_TAKE_N 0      // units of the output
#define GNI_P_TAKE_INNER 1  // units of a row, and how to divide by it
#define GNI_P_TAKE_COUNT 4  // rows picked, and how to divide by it
#define GNI_P_TAKE_EXTENT 7 // rows there are
#define GNI_P_TAKE_IN_BASE 8
#define GNI_P_TAKE_INDEX_BASE 9
#define GNI_P_TAKE_OUT_BASE 10
#define GNI_P_TAKE_WORDS 11

#define GNI_S_SCATTER_STEP 3 // the others are those of take.comp
#define GNI_S_SCATTER_DTYPE 4
#define GNI_S_SCATTER_LEAST 5
#define GNI_S_SCATTER_PAIRS 6 // places are known, beside their elements
#define GNI_S_SCATTER_SPECS 7
#define GNI_SCATTER_ADD_WORD 0 // steps over the elements
#define GNI_SCATTER_ADD_WIDE 1
#define GNI_SCATTER_EXTREME 2
#define GNI_SCATTER_MEASURE 3
#define GNI_SCATTER_ADD_FLOAT 4
#define GNI_SCATTER_NUMBER 5 // the number of the last element for a place
#define GNI_SCATTER_PLACES 6 // places, to be sorted with their elements
#define GNI_SCATTER_TO_KEYS 7 // and over the places
#define GNI_SCATTER_FROM_KEYS 8
#define GNI_SCATTER_FINISH 9
#define GNI_SCATTER_PUT_LAST 10
#define GNI_P_SCATTER_PLACES 11
#define GNI_P_SCATTER_BITS 12
#define GNI_P_SCATTER_SHIFT 13 // sums.comp
#define GNI_P_SCATTER_SECOND 14 // word of the second digit's counts
#define GNI_P_SCATTER_LIMIT 15  // elements of a workgroup
#define GNI_P_SCATTER_BASE 16
#define GNI_P_SCATTER_WORDS 17
#define GNI_SCATTER_HELD 2048 // places whose sums a workgroup holds

// ---- keep.comp

#define GNI_S_KEEP_STEP 0
#define GNI_KEEP_COUNT 0u
#define GNI_KEEP_PLACES 1u
#define GNI_KEEP_ELEMENTS 2u
#define GNI_S_KEEP_UNIT 1 // log2 of an element's bytes
#define GNI_S_KEEP_RANK 2
#define GNI_S_KEEP_SPECS 3
#define GNI_P_KEEP_CHUNK 0
#define GNI_P_KEEP_BASE 1
#define GNI_P_KEEP_END 2
#define GNI_P_KEEP_COUNT_ALL 3 // how many are true
#define GNI_P_KEEP_IN_BASE 4
#define GNI_P_KEEP_OUT_BASE 5
#define GNI_P_KEEP_DIM 6 // of up to 8 axes
#define GNI_P_KEEP_WORDS 14

// ---- order.glsl: sort.comp, sweep.comp, find.comp, count.comp, select.comp, top.comp

#define GNI_S_ORDER_LOG_BYTES 0
#define GNI_S_ORDER_FLAGS 1
#define GNI_F_ORDER_FLOAT 1u
#define GNI_F_ORDER_SIGNED 2u
#define GNI_F_ORDER_DESCENDING 4u
#define GNI_F_ORDER_ZEROS 8u // both have one key
#define GNI_S_ORDER_INF 2
#define GNI_S_ORDER_SPECS 3

#define GNI_S_SORT_PLACES 3
#define GNI_S_SORT_VALUES 4
#define GNI_S_SORT_FIRST 5 // keys come from the elements
#define GNI_S_SORT_LOG_ROW 6
#define GNI_S_SORT_SPECS 7
#define GNI_S_SWEEP_THREADS 5 // sweep.comp, after the same two
#define GNI_S_SWEEP_SUBGROUP 6
#define GNI_S_SWEEP_EACH 7
#define GNI_S_SWEEP_LOOKS 8
#define GNI_S_SWEEP_ONE 9 // one digit of words, of pairs with words
#define GNI_S_SWEEP_SPECS 10
#define GNI_SORT_TILE 2048 // elements of a workgroup
#define GNI_P_SORT_ROWS 0
#define GNI_P_SORT_N 1
#define GNI_P_SORT_IN_BASE 2
#define GNI_P_SORT_TILES 3
#define GNI_P_SORT_SHIFT 4
#define GNI_P_SORT_SKIP 5 // sorted elements in front of those that are asked for
#define GNI_P_SORT_TAKE 6 // and how many those are
#define GNI_P_SORT_OUT_BASE 7
#define GNI_P_SORT_INDEX_BASE 8
#define GNI_P_SORT_ROW 9 // elements from one row to the next
#define GNI_P_SORT_WORDS 10

#define GNI_P_SELECT_ROWS 0
#define GNI_P_SELECT_N 1
#define GNI_P_SELECT_IN_BASE 2
#define GNI_P_SELECT_SEARCHES 3
#define GNI_P_SELECT_SPLITS 4
#define GNI_P_SELECT_SHIFT 5
#define GNI_P_SELECT_WIDTH 6
#define GNI_P_SELECT_OUT_BASE 7
#define GNI_P_SELECT_TAKE 8
#define GNI_P_SELECT_ROOM 9
#define GNI_P_SELECT_PLACE 10
#define GNI_P_SELECT_RUN 11
#define GNI_P_SELECT_WORDS 12
#define GNI_SELECT_BITS 12 // of a digit

#define GNI_P_TOP_ROWS 0
#define GNI_P_TOP_N 1
#define GNI_P_TOP_IN_BASE 2
#define GNI_P_TOP_EACH 3
#define GNI_P_TOP_LANES 4
#define GNI_P_TOP_RANK 5
#define GNI_P_TOP_SPLITS 6
#define GNI_P_TOP_TAKE 7
#define GNI_P_TOP_OUT_BASE 8
#define GNI_P_TOP_INDEX_BASE 9
#define GNI_P_TOP_WORDS 10
#define GNI_TOP_GROUPS 256 // as many as invocations
#define GNI_TOP_ROOM 2048  // for so many of a row

#define GNI_P_FIND_N 0
#define GNI_P_FIND_LINE 1
#define GNI_P_FIND_IN_BASE 2
#define GNI_P_FIND_LINE_BASE 3
#define GNI_P_FIND_OUT_BASE 4
#define GNI_P_FIND_RIGHT 5
#define GNI_P_FIND_LEAST 6 // the first number that is counted
#define GNI_P_FIND_START 7 // count.comp, float32: edges are about evenly apart from there on
#define GNI_P_FIND_SCALE 8 // 1 / how far, or 0: they are anywhere
#define GNI_P_FIND_BITS 9  // weigh.comp
#define GNI_P_FIND_WORDS 10
#define GNI_S_FIND_COPIES 3 // of each count in shared memory
#define GNI_S_FIND_EDGES 4  // numbers are how many edges are not above an element
#define GNI_S_FIND_STEP 4   // weigh.comp
#define GNI_S_FIND_SPECS 5
#define GNI_COUNT_HOLDS 5120 // words of counts in shared memory
#define GNI_COUNT_EDGES 2048 // most parts between edges
#define GNI_WEIGH_HOLDS 2048 // sums of weights in shared memory

// ---- scan.comp

#define GNI_S_SCAN_OP 0 // gni_scan_op
#define GNI_S_SCAN_DTYPE 1
#define GNI_S_SCAN_INTEGER 2
#define GNI_S_SCAN_PHASE 3
#define GNI_F_SCAN_TOTALS 0u
#define GNI_F_SCAN_TILES 1u
#define GNI_F_SCAN_COLUMNS 2u
#define GNI_F_SCAN_ONE_PASS 3u // scan_fast.comp
#define GNI_S_SCAN_FLAGS 4
#define GNI_F_SCAN_CARRY 1u     // there are parts
#define GNI_F_SCAN_EXCLUSIVE 2u // without the element itself
#define GNI_F_SCAN_STALL 4u     // tests: some tiles do not say what they come to
#define GNI_S_SCAN_SPECS 5
#define GNI_S_SCAN_THREADS 5 // scan_fast.comp
#define GNI_S_SCAN_EACH 6
#define GNI_S_SCAN_LANES 7
#define GNI_S_SCAN_FAST_SPECS 8
#define GNI_SCAN_STRIP 256 // groups of columns of all subgroups
#define GNI_SCAN_TILE 2048 // elements of a workgroup
#define GNI_P_SCAN_OUTER 0
#define GNI_P_SCAN_N 1
#define GNI_P_SCAN_INNER 2
#define GNI_P_SCAN_IN_BASE 3
#define GNI_P_SCAN_OUT_BASE 4
#define GNI_P_SCAN_TILES 5
#define GNI_P_SCAN_EPOCH 6
#define GNI_P_SCAN_WORDS 7

// ---- attention.comp

#define GNI_S_ATTEND_D 0      // elements of a query and of a key
#define GNI_S_ATTEND_E 1      // of a value
#define GNI_S_ATTEND_FLAGS 2
#define GNI_S_ATTEND_BLOCKS 3 // of 16 rows that a subgroup has
#define GNI_S_ATTEND_KEYS 4   // keys of a tile
#define GNI_S_ATTEND_SPECS 5
#define GNI_S_ATTEND_STEP 3  // attend.comp's: gni_attend_step
#define GNI_S_ATTEND_DTYPE 4
#define GNI_F_ATTEND_CAUSAL 1u
#define GNI_F_ATTEND_LSE 2u    // the rows' logarithms of sums are written
#define GNI_F_ATTEND_BF16 4u
#define GNI_F_ATTEND_SAME 8u   // sums have their elements where first operands have them
#define GNI_F_ATTEND_ASKS 16u  // is to write only these flags, in place of a logarithm
#define GNI_F_ATTEND_KNOWN 32u // and these are the places that attention.comp knows
#define GNI_F_ATTEND_CUTS 64u  // conversions to first operands cut off instead of rounding
#define GNI_F_ATTEND_MASK 128u
#define GNI_F_ATTEND_TRUTHS 256u // which is bool
#define GNI_F_ATTEND_OF_KEYS 512u // and the same for all queries
#define GNI_F_ATTEND_DROPS 1024u
#define GNI_P_ATTEND_N 0      // queries
#define GNI_P_ATTEND_M 1      // keys
#define GNI_P_ATTEND_SHARE 2  // heads to a key head
#define GNI_P_ATTEND_SCALE 3  // times log2 e
#define GNI_P_ATTEND_Q 4      // base, strides of batch, head, row, in groups of 8; so the next ones
#define GNI_P_ATTEND_K 8
#define GNI_P_ATTEND_V 12
#define GNI_P_ATTEND_Y 16     // or dq, or dk
#define GNI_P_ATTEND_GY 20
#define GNI_P_ATTEND_DV 24
#define GNI_P_ATTEND_LSE 28
#define GNI_P_ATTEND_DOT 29
#define GNI_P_ATTEND_MASK 30    // base, strides of batch, head, row, key, in elements
#define GNI_P_ATTEND_KEY 35     // of dropout's random numbers, two words; so the next
#define GNI_P_ATTEND_COUNTER 37
#define GNI_P_ATTEND_BELOW 39   // where the upper 24 bits are below it, a weight is dropped
#define GNI_P_ATTEND_KEEP 40    // what the others are multiplied by
#define GNI_P_ATTEND_WORDS 41
#define GNI_ATTEND_HIDES -1.0e30 // and less: what a mask hides

// ---- random.comp

#define GNI_S_RANDOM_KIND 0 // gni_random_kind
#define GNI_S_RANDOM_PAIRS 1
#define GNI_S_RANDOM_DTYPE 2
#define GNI_S_RANDOM_SPECS 3

#define GNI_P_RANDOM_N 0
#define GNI_P_RANDOM_OUT_BASE 1
#define GNI_P_RANDOM_COUNTER 2 // two words
#define GNI_P_RANDOM_KEY 4     // two words
#define GNI_P_RANDOM_LOW 6   // of uniform floats: their bits
#define GNI_P_RANDOM_RANGE 7 // 0: 2^32
#define GNI_P_RANDOM_SCALE 8 // of floats: what they are multiplied by,
#define GNI_P_RANDOM_OFFSET 9 // and what is added
#define GNI_P_RANDOM_LOW_HIGH 8 // of integers of 64 bits
#define GNI_P_RANDOM_WORDS 10

// ---- draw.comp: the same specialisation, and the same parameters but for these

#define GNI_P_DRAW_LOW 6      // two words
#define GNI_P_DRAW_RANGE 8    // two words
#define GNI_P_DRAW_NUMBERS 10 // of a distribution, two words each:
#define GNI_P_DRAW_WORDS 34

#define GNI_D_GAMMA_SHAPE 0 // of the gamma distribution, and of the first of the two that a number of beta is made of
#define GNI_D_GAMMA_D 1
#define GNI_D_GAMMA_C 2
#define GNI_D_GAMMA_OTHER 3 // the same three of the second
#define GNI_D_SCALE 6       // of the exponential distribution too
#define GNI_D_LEAST 0       // poisson: exp(-mean), or 0 where the mean is from 10 on. binomial: -log(q), or 0 where n p is
#define GNI_D_MEAN 1        // of what is drawn from a wider curve and rejected
#define GNI_D_A 2
#define GNI_D_B 3
#define GNI_D_TOP 4
#define GNI_D_FACTOR 5
#define GNI_D_LOG 6         // of the mean, or of p / q
#define GNI_D_MODE 7        // binomial
#define GNI_D_HEIGHT 8
#define GNI_D_TRIALS 9
#define GNI_D_SWAP 10       // 1: counted is what fails, since p is above 1/2
#define GNI_D_WAY 0         // truncated: gni_truncated_way
#define GNI_D_LOW 1         // in deviations from the mean, with the sides exchanged where both are below it
#define GNI_D_HIGH 2
#define GNI_D_CENTER 3
#define GNI_D_SPREAD 4      // below 0 where the sides are exchanged
#define GNI_D_BOUND 5       // the caller's, and the other one
#define GNI_D_RATE 7
#define GNI_D_PEAK 8
#define GNI_D_FIRST 0       // of even steps
#define GNI_D_STEP 1
#define GNI_D_LAST 2
#define GNI_D_ROUNDS 8      // of permutations, a word each
#define GNI_D_COUNT 12

// ---- matrix products: matrix.glsl, matmul.comp, matmul_half.comp, matvec.comp

#define GNI_S_MATMUL_A_DTYPE 0
#define GNI_S_MATMUL_B_DTYPE 1
#define GNI_S_MATMUL_C_DTYPE 2
#define GNI_S_MATMUL_LAYOUT 3
#define GNI_S_MATMUL_SPECS 4
#define GNI_F_MATMUL_A_ALONG_M 1u // a is read along m, else along k,
#define GNI_F_MATMUL_A_GROUPS 2u  // in aligned groups: of 4, of 8 halves, of 2 doubles
#define GNI_F_MATMUL_B_ALONG_K 4u // b is read along k, else along n
#define GNI_F_MATMUL_B_GROUPS 8u
#define GNI_F_MATMUL_C_GROUPS 16u // of 4
#define GNI_F_MATMUL_BIAS 32u
#define GNI_F_MATMUL_RELU 64u
#define GNI_F_MATMUL_A_RUNS 128u // neighbours in memory, not aligned
#define GNI_F_MATMUL_B_RUNS 256u
#define GNI_F_MATMUL_SPLITS 512u
#define GNI_F_MATMUL_WHOLE 1024u     // k is a multiple of a tile's
#define GNI_F_MATMUL_C_EIGHTS 4096u  // c is written in aligned groups of 8
#define GNI_F_MATMUL_SPARE 65536u    // works if split.comp chose mode 2
#define GNI_F_MATMUL_INSIDE 131072u  // all tiles are whole
#define GNI_F_MATMUL_SUMS 262144u    // sums of b's columns go to buffer argument 6, as c's dtype
#define GNI_F_MATMUL_WINDOWS 524288u // rows and columns of b are counted by several indices: windows.glsl
#define GNI_F_MATMUL_EVEN 1048576u   // and a tile's step of k stays within the last one of k

#define GNI_P_MATMUL_M 0
#define GNI_P_MATMUL_N 1
#define GNI_P_MATMUL_K 2
#define GNI_P_MATMUL_BATCHES 3
#define GNI_P_MATMUL_A_BASE 4
#define GNI_P_MATMUL_A_ROW 5 // strides
#define GNI_P_MATMUL_A_COLUMN 6
#define GNI_P_MATMUL_B_BASE 7
#define GNI_P_MATMUL_B_ROW 8
#define GNI_P_MATMUL_B_COLUMN 9
#define GNI_P_MATMUL_C_BASE 10
#define GNI_P_MATMUL_BIAS_BASE 11 // or of the sums of b's columns
#define GNI_P_MATMUL_SPLITS 12
#define GNI_P_MATMUL_CHUNK 13    // of k, for each split
#define GNI_P_MATMUL_COUNTER0 14 // first of one counter for each batch and tile
#define GNI_P_MATMUL_TILES_M 15
#define GNI_P_MATMUL_TILES_N 16
#define GNI_P_MATMUL_BATCH_RANK 17
#define GNI_P_MATMUL_BATCH 18 // 8 x (extent, stride in a, stride in b)
#define GNI_P_MATMUL_C_ROW 46
#define GNI_P_MATMUL_ZERO 47        // 0, which compilers do not know
#define GNI_P_MATMUL_STRIPE 48      // rows of tiles that are taken column by column
#define GNI_P_MATMUL_WHOLE_TILES 49 // with splits: the first so many, counted over all batches, are not split
#define GNI_P_MATMUL_WORDS 50

// Of windows: divisions, last index's step, and for each index but the first (divider, step of the one in front).
#define GNI_P_WINDOWS_K 50
#define GNI_P_WINDOWS_N 64
#define GNI_P_WINDOWS_C 78 // divider: columns of c that follow each other, and the distance of such runs
#define GNI_P_WINDOWS_WORDS 82

// ---- images with their channels last: image.comp

#define GNI_S_IMAGE_IN_DTYPE 0
#define GNI_S_IMAGE_OUT_DTYPE 1
#define GNI_S_IMAGE_LARGEST 2 // what is largest goes behind the image
#define GNI_S_IMAGE_SPECS 3
#define GNI_P_IMAGE_PLACES 0 // of all images
#define GNI_P_IMAGE_CHANNELS 1
#define GNI_P_IMAGE_WIDTH 2 // channels that come out
#define GNI_P_IMAGE_IN_BASE 3
#define GNI_P_IMAGE_OUT_BASE 4
#define GNI_P_IMAGE_STEP_CHANNEL 5
#define GNI_P_IMAGE_STEP_IMAGE 6
#define GNI_P_IMAGE_AXIS 7 // 3, the last one first: (divider, places in front, places that there are, step)
#define GNI_P_IMAGE_LARGEST 25
#define GNI_P_IMAGE_WORDS 26

// ---- convolutions by tiles: winograd.comp

#define GNI_S_WINOGRAD_STEP 0
#define GNI_S_WINOGRAD_GROUPS 1
#define GNI_S_WINOGRAD_SPECS 2
#define GNI_P_WINOGRAD_TILES 0    // of all images; of kernels c
#define GNI_P_WINOGRAD_CHANNELS 1 // of one of the 36, of kernels o
#define GNI_P_WINOGRAD_OF_X 2     // dividers: tiles beside each other, and rows of them
#define GNI_P_WINOGRAD_OF_Y 5
#define GNI_P_WINOGRAD_BEFORE 8  // columns and rows in front of x
#define GNI_P_WINOGRAD_HAVE 10   // columns and rows of what is transformed, or of what comes out
#define GNI_P_WINOGRAD_X_HAVE 12 // of x
#define GNI_P_WINOGRAD_PLACES 14 // of y
#define GNI_P_WINOGRAD_DEPTH 16  // channels or images that are summed over
#define GNI_P_WINOGRAD_TO 17     // base of the 36
#define GNI_P_WINOGRAD_PLAIN 18  // of what they are made of, or become: base, strides of n, channel, y and x
#define GNI_P_WINOGRAD_X 23      // the same of x, buffer 2
#define GNI_P_WINOGRAD_W 28      // and of buffer 3
#define GNI_P_WINOGRAD_IMAGES 33 // tiles of further ones are zeros
#define GNI_P_WINOGRAD_WORDS 34

// ---- pooling: pool.comp

#define GNI_S_POOL_STEP 0
#define GNI_POOL_LARGEST 0u
#define GNI_POOL_AVERAGE 1u
#define GNI_POOL_BACK 2u
#define GNI_POOL_SPREAD 3u
#define GNI_POOL_FRAME 4u
#define GNI_S_POOL_DTYPE 1
#define GNI_S_POOL_ROWS 2 // of a window
#define GNI_S_POOL_COLUMNS 3
#define GNI_S_POOL_DOWN 4 // strides
#define GNI_S_POOL_ACROSS 5
#define GNI_S_POOL_DILATION_H 6
#define GNI_S_POOL_DILATION_W 7
#define GNI_S_POOL_HOW 8
#define GNI_F_POOL_TAPS 1u   // the largest ones' are written
#define GNI_F_POOL_INSIDE 2u // averages are of what is in the image
#define GNI_S_POOL_SPECS 9

#define GNI_P_POOL_N 0    // elements of the result
#define GNI_P_POOL_FROM 1 // rows and columns of what is read
#define GNI_P_POOL_PAD 3
#define GNI_P_POOL_TO_W 5 // dividers: columns and rows of the result
#define GNI_P_POOL_TO_H 8
#define GNI_P_POOL_BASE 11 // of the four buffers
#define GNI_P_POOL_VALUE 15
#define GNI_P_POOL_WORDS 16

// ---- convolutions of single channels: depth.comp

#define GNI_S_DEPTH_STEP 0
#define GNI_DEPTH_FORWARD 0u
#define GNI_DEPTH_BACK 1u
#define GNI_DEPTH_WEIGHT 2u
#define GNI_S_DEPTH_IN 1 // dtypes
#define GNI_S_DEPTH_OUT 2
#define GNI_S_DEPTH_ROWS 3 // of kernels
#define GNI_S_DEPTH_COLUMNS 4
#define GNI_S_DEPTH_DOWN 5 // strides
#define GNI_S_DEPTH_ACROSS 6
#define GNI_S_DEPTH_READ 7 // channels of a group that are read for each that is made, and how many are made of them
#define GNI_S_DEPTH_MADE 8
#define GNI_S_DEPTH_BLOCK 9 // of those that are made, which divides them: an invocation's
#define GNI_S_DEPTH_SPECS 10
#define GNI_DEPTH_TAPS 49 // of kernels at most
#define GNI_P_DEPTH_N 0
#define GNI_P_DEPTH_FROM 1     // rows and columns of what is read by taps
#define GNI_P_DEPTH_PAD 3      // rows and columns
#define GNI_P_DEPTH_DILATION 5
#define GNI_P_DEPTH_PARTS 7
#define GNI_P_DEPTH_TO_W 8     // dividers: columns and rows of places, channels
#define GNI_P_DEPTH_TO_H 11
#define GNI_P_DEPTH_CHANNELS 14
#define GNI_P_DEPTH_IN 17      // base, strides of n, channel, row and column
#define GNI_P_DEPTH_OTHER 22   // the same, of w's four dimensions or those of y's gradient
#define GNI_P_DEPTH_OUT 27
#define GNI_P_DEPTH_WORDS 28

#define GNI_S_MATVEC_LOG_LANES 4 // the others are those of matrices
#define GNI_S_MATVEC_SPECS 5
#define GNI_F_MATVEC_COLUMNS 1u
#define GNI_F_MATVEC_X_GROUPS 2u
#define GNI_F_MATVEC_Y_GROUPS 4u // y has aligned groups along k
#define GNI_F_MATVEC_EIGHTS 8u   // x has aligned groups of 8 elements of 16 bits
#define GNI_F_MATVEC_BIAS 32u
#define GNI_F_MATVEC_RELU 64u
#define GNI_P_MATVEC_C_LONG 42 // steps in c and in bias
#define GNI_P_MATVEC_BIAS_LONG 44
#define GNI_P_MATVEC_C_BATCH 47

// Programs at the store or at the load of an operand: epilogue.glsl, prologue.glsl.
#define GNI_S_PROLOGUE 4      // prologue.glsl: 1: a is made, 2: b
#define GNI_S_STORE 16        // 0: there is none. Bit 0, inputs beside the product in bits 4-7, instructions 8-15, result's
                              // register 16-23
#define GNI_S_STORE_INPUTS 17 // 8 bits for each: dtype in 0-3, and
#define GNI_F_STORE_ONE 16u   // the run has one element of it
#define GNI_F_STORE_GROUPS 32u
#define GNI_S_STORE_STEPS 18  // instructions, at most 8
#define GNI_P_STORE 128      // 3 x (base, steps along m, n and batches), and from there on
#define GNI_P_STORE_CONST 12 // 8
#define GNI_P_STORE_WORDS 20

// ---- float32 products on matrix units: split.comp, matmul_split.glsl

#define GNI_S_SPLIT_LAYOUT 0
#define GNI_S_SPLIT_SPECS 1
#define GNI_F_SPLIT_ALONG_ROWS 1u // neighbours in memory are of neighbouring rows
#define GNI_F_SPLIT_GROUPS 2u     // and come in aligned groups of 4

#define GNI_P_SPLIT_ROWS 0
#define GNI_P_SPLIT_LENGTH 1 // k
#define GNI_P_SPLIT_BASE 2
#define GNI_P_SPLIT_STEP_ROW 3
#define GNI_P_SPLIT_STEP 4
#define GNI_P_SPLIT_PADDED 5     // rows
#define GNI_P_SPLIT_SLICES 6     // padded
#define GNI_P_SPLIT_INFO 7       // where the rows' magnitudes are
#define GNI_P_SPLIT_PIECE 8      // of k, for a workgroup of the scan
#define GNI_P_SPLIT_WORKGROUPS 9 // of the scans of both operands
#define GNI_P_SPLIT_FIRST_INFO 10
#define GNI_P_SPLIT_TOTAL_A 11 // rows with magnitudes
#define GNI_P_SPLIT_TOTAL_B 12
#define GNI_P_SPLIT_LEAST_MODE 13
#define GNI_P_SPLIT_RANK 14
#define GNI_P_SPLIT_BFLOAT 15 // whether the device has bfloat16
#define GNI_P_SPLIT_DIM 16    // 8 x (extent, stride)
#define GNI_P_SPLIT_WORDS 32

#define GNI_SPLIT_CONTROL 64 // control words before the rows' magnitudes
#define GNI_SPLIT_PATCHES 28 // rows, and columns, that may be left out of a mode

// Behind the words of matrix products.
#define GNI_P_PARTS_PADDED_M 96 // rows of a, columns of b that were packed
#define GNI_P_PARTS_PADDED_N 97
#define GNI_P_PARTS_SLICES 98
#define GNI_P_PARTS_A_PACKED 99 // as many batches
#define GNI_P_PARTS_B_PACKED 100
#define GNI_P_PARTS_A_INFO 101
#define GNI_P_PARTS_B_INFO 102
#define GNI_P_PARTS_WORDS 103
// Of operands that the kernel takes apart: where the numbers lie that tell what is largest in each row's 128 neighbours,
// and how many a row has. With windows: in 64 places of 32 channels of an image; how many there are of the same places;
// divider of k or columns by those of an image, and its places.
#define GNI_FLOATS_LINE 128 // neighbours that one such number is of
#define GNI_FLOATS_PLACES 64
#define GNI_P_FLOATS_A_LARGEST 96
#define GNI_P_FLOATS_B_LARGEST 102
#define GNI_P_FLOATS_WORDS 108

// ---- Fourier transforms: fft.glsl, fft.comp, fft_any.comp

#define GNI_F_FFT_REAL_IN 1u   // the operand has no imaginary parts
#define GNI_F_FFT_HALF_IN 2u   // it is half a Hermitian sequence
#define GNI_F_FFT_REAL_OUT 4u  // the result has no imaginary parts
#define GNI_F_FFT_FACTOR_IN 8u // times buffer 3
#define GNI_F_FFT_FACTOR_OUT 16u
#define GNI_F_FFT_TWIST 32u
#define GNI_F_FFT_SWAP_IN 64u      // exchange the parts: before the factor is applied to the operand,
#define GNI_F_FFT_SWAP_IN_2 128u   // after that,
#define GNI_F_FFT_SWAP_OUT 256u    // before the factor is applied to the result,
#define GNI_F_FFT_SWAP_OUT_2 512u  // and after that
#define GNI_F_FFT_ACROSS_IN 1024u  // neighbouring invocations read neighbouring lines, not points
#define GNI_F_FFT_ACROSS_OUT 2048u
#define GNI_F_FFT_CUT_IN 4096u     // some elements are beyond the count
#define GNI_F_FFT_CUT_OUT 8192u
#define GNI_F_FFT_PAIR_IN 16384u   // real and imaginary part are two elements of a real array
#define GNI_F_FFT_PAIR_OUT 32768u
#define GNI_F_FFT_FOLD_IN 65536u   // from the half spectrum of real numbers to that of their pairs,
#define GNI_F_FFT_FOLD_OUT 131072u // and from that to this
#define GNI_F_FFT_CONJ 262144u     // of the half spectrum
#define GNI_F_FFT_FOLD_TABLE 524288u // a fold's turns are buffer 3 on the way in, 4 on the way out
#define GNI_F_FFT_PARAMETER 0x80000000u // fft_any.comp: the flags are those of the parameters

#define GNI_S_FFT_RADIX 0 // 4, applied first to last
#define GNI_S_FFT_LINES 4 // of a workgroup
#define GNI_S_FFT_TEAM 5  // invocations of a line
#define GNI_S_FFT_FLAGS 6
#define GNI_S_FFT_STEP_IN 7 // between points, if not 0
#define GNI_S_FFT_STEP_OUT 8
#define GNI_S_FFT_SPECS 9

#define GNI_S_FFT_ANY_FLAGS 0
#define GNI_S_FFT_ANY_RADICES 1 // bit r: radix r occurs
#define GNI_S_FFT_ANY_SPECS 2

#define GNI_P_FFT_LINES 0
#define GNI_P_FFT_IN 1 // first element, step between points, elements that exist,
#define GNI_P_FFT_IN_STEP 2
#define GNI_P_FFT_IN_COUNT 3
#define GNI_P_FFT_OUT 4 // and the same for the result
#define GNI_P_FFT_OUT_STEP 5
#define GNI_P_FFT_OUT_COUNT 6
#define GNI_P_FFT_IN_EACH 7  // step between elements of a sequence
#define GNI_P_FFT_SPAN 8     // point j of a line is element j * span + unit of the operand,
#define GNI_P_FFT_OUT_SPAN 9 // and of the result
#define GNI_P_FFT_TWIST 10   // points of the transform that this pass is a part of
#define GNI_P_FFT_FULL 11    // points of the whole transform
#define GNI_P_FFT_RANK 12
#define GNI_P_FFT_FLAGS 13
#define GNI_P_FFT_TOGETHER 14 // lines in a workgroup
#define GNI_P_FFT_POINTS 15
#define GNI_P_FFT_RADIX 16         // 6, first applied first, 1 from the last one on
#define GNI_P_FFT_TWIST_INVERSE 22 // 1 / twist, as two floats or one double
#define GNI_P_FFT_FOLD_INVERSE 24  // 1 / (2 full) alike
#define GNI_P_FFT_SCALE 26         // a float or a double
#define GNI_P_FFT_OUT_EACH 28
#define GNI_P_FFT_DIM 29 // size, 2^(31 + shift) / size, shift, step in the operand, in the result, unit, out unit
#define GNI_P_FFT_DIM_WORDS 7

// fft_wide.comp
#define GNI_F_FFT_WIDE_LAST 1u // the result is scaled and has only first parts
#define GNI_F_FFT_WIDE_CONJ 2u // of the chirp

#define GNI_P_FFT_WIDE_POINTS 0
#define GNI_P_FFT_WIDE_RADIX 1
#define GNI_P_FFT_WIDE_STEP 2  // product of the radices before
#define GNI_P_FFT_WIDE_CHIRP 3 // not 0: instead of an operand the chirp of so many points; the circle has twice as many
#define GNI_P_FFT_WIDE_FLAGS 4
#define GNI_P_FFT_WIDE_SHIFT 5
#define GNI_P_FFT_WIDE_SCALE 6 // in two parts
#define GNI_P_FFT_WIDE_WORDS 8

// ---- decompositions of large matrices: factor.comp

#define GNI_P_PICK_BASE 0
#define GNI_P_PICK_LD 1
#define GNI_P_PICK_FIRST 2 // first row, and first column
#define GNI_P_PICK_COUNT 3 // rows that stand for election
#define GNI_P_PICK_WIDTH 4
#define GNI_P_PICK_COUNTERS 5 // first of them in the state, one for each workgroup from the second round on
#define GNI_P_PICK_LISTS 6    // of rows, in the state
#define GNI_P_PICK_PICKED 7   // list of those picked at last

#define GNI_P_SWAP_BASE 0
#define GNI_P_SWAP_LD 1
#define GNI_P_SWAP_FIRST 2
#define GNI_P_SWAP_COLUMNS 3
#define GNI_P_SWAP_WIDTH 4
#define GNI_P_SWAP_LIST 5
#define GNI_P_SWAP_ORDER 6 // of the rows, in the state
#define GNI_P_SWAP_END 7   // columns up to here are of the same panel

#define GNI_P_BELOW_BASE 0
#define GNI_P_BELOW_LD 1
#define GNI_P_BELOW_FIRST 2
#define GNI_P_BELOW_ALL_ROWS 3
#define GNI_P_BELOW_END 4

#define GNI_P_SOLVE_B_BASE 0
#define GNI_P_SOLVE_B_ROW 1
#define GNI_P_SOLVE_B_COLUMN 2
#define GNI_P_SOLVE_T_BASE 3
#define GNI_P_SOLVE_T_ROW 4
#define GNI_P_SOLVE_T_COLUMN 5
#define GNI_P_SOLVE_ORDER 6
#define GNI_P_SOLVE_COLUMNS 7
#define GNI_P_SOLVE_UNIT 8
#define GNI_P_SOLVE_MORE 9 // for triangles that may be ill-conditioned

#define GNI_P_UPDATE_C_BASE 0
#define GNI_P_UPDATE_C_ROW 1
#define GNI_P_UPDATE_A_BASE 2
#define GNI_P_UPDATE_A_ROW 3
#define GNI_P_UPDATE_A_COLUMN 4
#define GNI_P_UPDATE_B_BASE 5
#define GNI_P_UPDATE_B_ROW 6
#define GNI_P_UPDATE_B_COLUMN 7
#define GNI_P_UPDATE_M 8
#define GNI_P_UPDATE_N 9
#define GNI_P_UPDATE_K 10
#define GNI_P_UPDATE_LOWER 11

#define GNI_P_ROOT_BASE 0
#define GNI_P_ROOT_LD 1
#define GNI_P_ROOT_ORDER 2 // <= 128
#define GNI_P_ROOT_FIRST 4 // of the whole matrix, for the state
#define GNI_P_ROOT_INFO 5  // word of the state

// Of all these: from matrix to matrix in each of the three buffers, and how many there are.
#define GNI_P_FACTOR_STEP 12
#define GNI_P_FACTOR_BATCH 15

// ---- decompositions of batches: factor_small.glsl

#define GNI_P_SMALL_BASE 0
#define GNI_P_SMALL_ROW 1
#define GNI_P_SMALL_COLUMN 2
#define GNI_P_SMALL_STEP 3 // from matrix to matrix
#define GNI_P_SMALL_TO 4
#define GNI_P_SMALL_TO_ROW 5
#define GNI_P_SMALL_TO_COLUMN 6
#define GNI_P_SMALL_TO_STEP 7
#define GNI_P_SMALL_BATCH 8
#define GNI_P_SMALL_N 9
#define GNI_P_SMALL_MORE 10  // back: columns of b; qr: columns
#define GNI_P_SMALL_FIRST 11 // cholesky: of a large matrix
#define GNI_P_SMALL_MODE 12
#define GNI_P_SMALL_A 13 // triangle and tiny, as the first four
#define GNI_P_SMALL_A_ROW 14
#define GNI_P_SMALL_A_COLUMN 15
#define GNI_P_SMALL_A_STEP 16
#define GNI_SMALL_DETERMINANT 1 // lu, and as two numbers
#define GNI_SMALL_LOG_DET 2
#define GNI_DET_RANGE 100       // most of their first one's exponent
#define GNI_SMALL_IDENTITY 1    // back: b is the identity
#define GNI_SMALL_UNIT 1        // triangle: as if its diagonal were 1
#define GNI_S_TINY_ORDER 0
#define GNI_S_TINY_MODE 1
#define GNI_TINY_SOLVE 0
#define GNI_TINY_INVERSE 1
#define GNI_TINY_CHOLESKY 2
#define GNI_TINY_DETERMINANT 3
#define GNI_TINY_LOG_DET 4
#define GNI_TINY_MOST 8 // rows
#define GNI_SMALL_UPPER 2       // triangle: of an upper one read backwards, the last 0 on the diagonal is told of

// ---- eigenvalues and singular values of batches: eigen.glsl

#define GNI_S_EIGEN_SIZE 0
#define GNI_S_EIGEN_PAIRS 1 // of columns, in an invocation
#define GNI_S_EIGEN_MODE 2  // 0: singular values, 1: and vectors, 2: eigenvalues, 3: and vectors
#define GNI_S_EIGEN_THREADS 3
#define GNI_S_EIGEN_SPECS 4

#define GNI_P_EIGEN_BASE 0
#define GNI_P_EIGEN_ROW 1
#define GNI_P_EIGEN_COLUMN 2
#define GNI_P_EIGEN_STEP 3 // from matrix to matrix
#define GNI_P_EIGEN_BATCH 4
#define GNI_P_EIGEN_ROWS 5
#define GNI_P_EIGEN_N 6    // columns, no more than rows
#define GNI_P_EIGEN_FULL 7 // columns of the left vectors
#define GNI_P_EIGEN_LEFT_ROW 8
#define GNI_P_EIGEN_LEFT_COLUMN 9
#define GNI_P_EIGEN_LEFT_STEP 10
#define GNI_P_EIGEN_RIGHT_ROW 11
#define GNI_P_EIGEN_RIGHT_COLUMN 12

// ---- reflections of large matrices: reflect_load.comp, reflect.comp

#define GNI_P_LOAD_BASE 0
#define GNI_P_LOAD_ROW 1
#define GNI_P_LOAD_COLUMN 2
#define GNI_P_LOAD_M 3
#define GNI_P_LOAD_N 4
#define GNI_P_LOAD_SYMMETRIC 5
#define GNI_P_LOAD_SIZE_WORDS 6 // of reflect_size
#define GNI_P_LOAD_TO 6         // (m, ld)
#define GNI_P_LOAD_LD 7
#define GNI_P_LOAD_TRANSPOSED 8 // (n, transposed_ld), if that is not 0
#define GNI_P_LOAD_TRANSPOSED_LD 9
#define GNI_P_LOAD_WORDS 10

#define GNI_S_REFLECT_THREADS 0
#define GNI_S_REFLECT_SYMMETRIC 1
#define GNI_S_REFLECT_SPECS 2

#define GNI_P_REFLECT_BASE 0
#define GNI_P_REFLECT_LD 1
#define GNI_P_REFLECT_ROW 2   // the row that is reflected
#define GNI_P_REFLECT_FIRST 3 // the reflection's first column
#define GNI_P_REFLECT_BEGIN 4 // rows from here
#define GNI_P_REFLECT_END 5   // to here are multiplied
#define GNI_P_REFLECT_COLUMNS 6
#define GNI_P_REFLECT_PLAIN_A 7 // a -= raw_a plain_a^T + plain_b raw_b^T: places in the second buffer
#define GNI_P_REFLECT_RAW_A 8
#define GNI_P_REFLECT_PLAIN_B 9
#define GNI_P_REFLECT_RAW_B 10
#define GNI_P_REFLECT_V 11       // the reflection
#define GNI_P_REFLECT_PRODUCT 12 // and where the products with it go
#define GNI_P_REFLECT_NUMBERS 13 // the row's element on the diagonal, and what is left of the others
#define GNI_P_REFLECT_SHARE 14   // rows of a workgroup
#define GNI_P_REFLECT_WORDS 15

// ---- selftest.comp

#define GNI_S_SELFTEST_FACTOR 0
#define GNI_S_SELFTEST_VECTORS 1
#define GNI_S_SELFTEST_SPECS 2
#define GNI_P_SELFTEST_COUNT 0
#define GNI_P_SELFTEST_INPUTS 1
#define GNI_P_SELFTEST_PLUS 2
#define GNI_P_SELFTEST_WORDS 3
