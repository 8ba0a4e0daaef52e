// For a test that is linked with -Wl,--wrap=wgpuAdapterGetInfo: the adapter says that it is a GPU, so that lavapipe gets a GPU's kernels.

#include <webgpu/webgpu.h>

WGPUStatus __real_wgpuAdapterGetInfo(WGPUAdapter adapter, WGPUAdapterInfo *info);
WGPUStatus __wrap_wgpuAdapterGetInfo(WGPUAdapter adapter, WGPUAdapterInfo *info);

WGPUStatus __wrap_wgpuAdapterGetInfo(WGPUAdapter adapter, WGPUAdapterInfo *info) {
    const WGPUStatus status = __real_wgpuAdapterGetInfo(adapter, info);
    info->adapterType = WGPUAdapterType_DiscreteGPU;
    return status;
}
