// For tests that are linked with -Wl,--wrap=wgpuAdapterGetLimits: the adapter says nothing of its limits, so that the device has the
// default ones.

#include <webgpu/webgpu.h>

WGPUStatus __wrap_wgpuAdapterGetLimits(WGPUAdapter adapter, WGPULimits *limits);

WGPUStatus __wrap_wgpuAdapterGetLimits(WGPUAdapter adapter, WGPULimits *limits) {
    (void)adapter, (void)limits;
    return WGPUStatus_Error;
}
