// >>fft_end
// Takes the names of room fft_numbers back, and after float32 compiles the FFT rooms for float64, by including this file
// again: that is read whole each time, and once less so.

#undef GNI_FT_T
#undef GNI_FT_WIDE
#undef GNI_FT_I
#undef GNI_FT_W
#undef GNI_FT
#undef GNI_FT_FMA
#undef GNI_FT_FNMA
#undef GNI_FT_MAX_RADIX
#if GNI_FFT_PASS == 32
#undef GNI_FFT_PASS
#define GNI_FFT_PASS 64
#include GPUNUM_SELF
#undef GNI_FFT_PASS
#endif
