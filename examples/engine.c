// A program that owns its Vulkan device, as a game engine does, and lets gpunum compute on it.
//
// The host makes instance, device and queue through volk, fills a buffer of its own in a compute pass of
// its own, gpunum standardises the values in it (no copy: it works on the host's VkBuffer), and the host's
// next pass works on gpunum's result, again without a copy. All of it in one command buffer: gpunum records
// into the host's. At the end the host reads the result and checks it.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <volk.h>

#include "gpunum.h"

enum { COUNT = 100000 };

// The host's own compute pass, compiled from this:
//
//   #version 450
//   layout(local_size_x = 64) in;
//   layout(std430, binding = 0) buffer Heights { float height[]; };
//   layout(push_constant) uniform Push { uint count; float time; uint pass; };
//   void main() {
//       uint i = gl_GlobalInvocationID.x;
//       if (i >= count) return;
//       float x = float(i) * 0.01;
//       if (pass == 0u) height[i] = 3.0 + sin(x + time) + 0.5 * cos(2.7 * x - time);
//       else height[i] = clamp(height[i], -1.0, 1.0);
//   }
static const uint32_t pass_spirv[] = {
    0x07230203, 0x00010300, 0x0008000b, 0x00000051, 0x00000000, 0x00020011, 0x00000001, 0x0006000b,
    0x00000001, 0x4c534c47, 0x6474732e, 0x3035342e, 0x00000000, 0x0003000e, 0x00000000, 0x00000001,
    0x0006000f, 0x00000005, 0x00000004, 0x6e69616d, 0x00000000, 0x0000000b, 0x00060010, 0x00000004,
    0x00000011, 0x00000040, 0x00000001, 0x00000001, 0x00040047, 0x0000000b, 0x0000000b, 0x0000001c,
    0x00050048, 0x00000012, 0x00000000, 0x00000023, 0x00000000, 0x00050048, 0x00000012, 0x00000001,
    0x00000023, 0x00000004, 0x00050048, 0x00000012, 0x00000002, 0x00000023, 0x00000008, 0x00030047,
    0x00000012, 0x00000002, 0x00040047, 0x0000002b, 0x00000006, 0x00000004, 0x00050048, 0x0000002c,
    0x00000000, 0x00000023, 0x00000000, 0x00030047, 0x0000002c, 0x00000002, 0x00040047, 0x0000002e,
    0x00000022, 0x00000000, 0x00040047, 0x0000002e, 0x00000021, 0x00000000, 0x00040047, 0x00000050,
    0x0000000b, 0x00000019, 0x00020013, 0x00000002, 0x00030021, 0x00000003, 0x00000002, 0x00040015,
    0x00000006, 0x00000020, 0x00000000, 0x00040020, 0x00000007, 0x00000007, 0x00000006, 0x00040017,
    0x00000009, 0x00000006, 0x00000003, 0x00040020, 0x0000000a, 0x00000001, 0x00000009, 0x0004003b,
    0x0000000a, 0x0000000b, 0x00000001, 0x0004002b, 0x00000006, 0x0000000c, 0x00000000, 0x00040020,
    0x0000000d, 0x00000001, 0x00000006, 0x00030016, 0x00000011, 0x00000020, 0x0005001e, 0x00000012,
    0x00000006, 0x00000011, 0x00000006, 0x00040020, 0x00000013, 0x00000009, 0x00000012, 0x0004003b,
    0x00000013, 0x00000014, 0x00000009, 0x00040015, 0x00000015, 0x00000020, 0x00000001, 0x0004002b,
    0x00000015, 0x00000016, 0x00000000, 0x00040020, 0x00000017, 0x00000009, 0x00000006, 0x00020014,
    0x0000001a, 0x00040020, 0x0000001f, 0x00000007, 0x00000011, 0x0004002b, 0x00000011, 0x00000023,
    0x3c23d70a, 0x0004002b, 0x00000015, 0x00000025, 0x00000002, 0x0003001d, 0x0000002b, 0x00000011,
    0x0003001e, 0x0000002c, 0x0000002b, 0x00040020, 0x0000002d, 0x0000000c, 0x0000002c, 0x0004003b,
    0x0000002d, 0x0000002e, 0x0000000c, 0x0004002b, 0x00000011, 0x00000030, 0x40400000, 0x0004002b,
    0x00000015, 0x00000032, 0x00000001, 0x00040020, 0x00000033, 0x00000009, 0x00000011, 0x0004002b,
    0x00000011, 0x00000039, 0x3f000000, 0x0004002b, 0x00000011, 0x0000003a, 0x402ccccd, 0x00040020,
    0x00000043, 0x0000000c, 0x00000011, 0x0004002b, 0x00000011, 0x0000004a, 0xbf800000, 0x0004002b,
    0x00000011, 0x0000004b, 0x3f800000, 0x0004002b, 0x00000006, 0x0000004e, 0x00000040, 0x0004002b,
    0x00000006, 0x0000004f, 0x00000001, 0x0006002c, 0x00000009, 0x00000050, 0x0000004e, 0x0000004f,
    0x0000004f, 0x00050036, 0x00000002, 0x00000004, 0x00000000, 0x00000003, 0x000200f8, 0x00000005,
    0x0004003b, 0x00000007, 0x00000008, 0x00000007, 0x0004003b, 0x0000001f, 0x00000020, 0x00000007,
    0x00050041, 0x0000000d, 0x0000000e, 0x0000000b, 0x0000000c, 0x0004003d, 0x00000006, 0x0000000f,
    0x0000000e, 0x0003003e, 0x00000008, 0x0000000f, 0x0004003d, 0x00000006, 0x00000010, 0x00000008,
    0x00050041, 0x00000017, 0x00000018, 0x00000014, 0x00000016, 0x0004003d, 0x00000006, 0x00000019,
    0x00000018, 0x000500ae, 0x0000001a, 0x0000001b, 0x00000010, 0x00000019, 0x000300f7, 0x0000001d,
    0x00000000, 0x000400fa, 0x0000001b, 0x0000001c, 0x0000001d, 0x000200f8, 0x0000001c, 0x000100fd,
    0x000200f8, 0x0000001d, 0x0004003d, 0x00000006, 0x00000021, 0x00000008, 0x00040070, 0x00000011,
    0x00000022, 0x00000021, 0x00050085, 0x00000011, 0x00000024, 0x00000022, 0x00000023, 0x0003003e,
    0x00000020, 0x00000024, 0x00050041, 0x00000017, 0x00000026, 0x00000014, 0x00000025, 0x0004003d,
    0x00000006, 0x00000027, 0x00000026, 0x000500aa, 0x0000001a, 0x00000028, 0x00000027, 0x0000000c,
    0x000300f7, 0x0000002a, 0x00000000, 0x000400fa, 0x00000028, 0x00000029, 0x00000045, 0x000200f8,
    0x00000029, 0x0004003d, 0x00000006, 0x0000002f, 0x00000008, 0x0004003d, 0x00000011, 0x00000031,
    0x00000020, 0x00050041, 0x00000033, 0x00000034, 0x00000014, 0x00000032, 0x0004003d, 0x00000011,
    0x00000035, 0x00000034, 0x00050081, 0x00000011, 0x00000036, 0x00000031, 0x00000035, 0x0006000c,
    0x00000011, 0x00000037, 0x00000001, 0x0000000d, 0x00000036, 0x00050081, 0x00000011, 0x00000038,
    0x00000030, 0x00000037, 0x0004003d, 0x00000011, 0x0000003b, 0x00000020, 0x00050085, 0x00000011,
    0x0000003c, 0x0000003a, 0x0000003b, 0x00050041, 0x00000033, 0x0000003d, 0x00000014, 0x00000032,
    0x0004003d, 0x00000011, 0x0000003e, 0x0000003d, 0x00050083, 0x00000011, 0x0000003f, 0x0000003c,
    0x0000003e, 0x0006000c, 0x00000011, 0x00000040, 0x00000001, 0x0000000e, 0x0000003f, 0x00050085,
    0x00000011, 0x00000041, 0x00000039, 0x00000040, 0x00050081, 0x00000011, 0x00000042, 0x00000038,
    0x00000041, 0x00060041, 0x00000043, 0x00000044, 0x0000002e, 0x00000016, 0x0000002f, 0x0003003e,
    0x00000044, 0x00000042, 0x000200f9, 0x0000002a, 0x000200f8, 0x00000045, 0x0004003d, 0x00000006,
    0x00000046, 0x00000008, 0x0004003d, 0x00000006, 0x00000047, 0x00000008, 0x00060041, 0x00000043,
    0x00000048, 0x0000002e, 0x00000016, 0x00000047, 0x0004003d, 0x00000011, 0x00000049, 0x00000048,
    0x0008000c, 0x00000011, 0x0000004c, 0x00000001, 0x0000002b, 0x00000049, 0x0000004a, 0x0000004b,
    0x00060041, 0x00000043, 0x0000004d, 0x0000002e, 0x00000016, 0x00000046, 0x0003003e, 0x0000004d,
    0x0000004c, 0x000200f9, 0x0000002a, 0x000200f8, 0x0000002a, 0x000100fd, 0x00010038,
};

typedef struct host {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t family;
    VkCommandPool pool;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkDescriptorPool sets;
} host;

typedef struct host_buffer {
    VkBuffer buffer;
    VkDeviceMemory memory;
} host_buffer;

static void check(VkResult r, const char *what) {
    if (r == VK_SUCCESS) return;
    fprintf(stderr, "%s failed: VkResult %d\n", what, (int)r);
    exit(1);
}

// ---- what every engine has: instance, device, queue

static void make_device(host *h) {
    VkApplicationInfo app = {
        VK_STRUCTURE_TYPE_APPLICATION_INFO, NULL, "engine", 1, "engine", 1, VK_API_VERSION_1_2};
    VkInstanceCreateInfo ici = {
        VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, NULL, 0, &app, 0, NULL, 0, NULL};
    check(volkInitialize(), "finding a Vulkan loader");
    check(vkCreateInstance(&ici, NULL, &h->instance), "vkCreateInstance");
    volkLoadInstance(h->instance);
    uint32_t count = 1;
    VkResult r = vkEnumeratePhysicalDevices(h->instance, &count, &h->physical);
    if (r != VK_INCOMPLETE) check(r, "vkEnumeratePhysicalDevices");
    if (count == 0) {
        fprintf(stderr, "no Vulkan device\n");
        exit(1);
    }
    VkQueueFamilyProperties families[16];
    uint32_t n = 16;
    vkGetPhysicalDeviceQueueFamilyProperties(h->physical, &n, families);
    for (h->family = 0; h->family < n; h->family++)
        if (families[h->family].queueFlags & VK_QUEUE_COMPUTE_BIT) break;
    float priority = 1.0f;
    VkDeviceQueueCreateInfo queue = {
        VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, NULL, 0, h->family, 1, &priority};
    VkPhysicalDeviceVulkan12Features f12;
    memset(&f12, 0, sizeof f12);
    f12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    f12.timelineSemaphore = VK_TRUE;   // gpunum needs this one
    f12.bufferDeviceAddress = VK_TRUE; // and is faster with this one
    VkDeviceCreateInfo dci = {
        VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &f12, 0, 1, &queue, 0, NULL, 0, NULL, NULL};
    check(vkCreateDevice(h->physical, &dci, NULL, &h->device), "vkCreateDevice");
    volkLoadDevice(h->device);
    vkGetDeviceQueue(h->device, h->family, 0, &h->queue);
    VkCommandPoolCreateInfo pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, NULL, 0, h->family};
    check(vkCreateCommandPool(h->device, &pool, NULL, &h->pool), "vkCreateCommandPool");
}

static void make_pass(host *h) {
    VkDescriptorSetLayoutBinding binding = {0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                                            VK_SHADER_STAGE_COMPUTE_BIT, NULL};
    VkDescriptorSetLayoutCreateInfo set = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                           NULL, 0, 1, &binding};
    check(vkCreateDescriptorSetLayout(h->device, &set, NULL, &h->set_layout),
          "vkCreateDescriptorSetLayout");
    VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, 12};
    VkPipelineLayoutCreateInfo layout = {
        VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, NULL, 0, 1, &h->set_layout, 1, &push};
    check(vkCreatePipelineLayout(h->device, &layout, NULL, &h->layout), "vkCreatePipelineLayout");
    VkShaderModuleCreateInfo code = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, NULL, 0,
                                     sizeof pass_spirv, pass_spirv};
    VkShaderModule module;
    check(vkCreateShaderModule(h->device, &code, NULL, &module), "vkCreateShaderModule");
    VkComputePipelineCreateInfo pipeline;
    memset(&pipeline, 0, sizeof pipeline);
    pipeline.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    pipeline.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    pipeline.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    pipeline.stage.module = module;
    pipeline.stage.pName = "main";
    pipeline.layout = h->layout;
    check(vkCreateComputePipelines(h->device, VK_NULL_HANDLE, 1, &pipeline, NULL, &h->pipeline),
          "vkCreateComputePipelines");
    vkDestroyShaderModule(h->device, module, NULL);
    VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2};
    VkDescriptorPoolCreateInfo sets = {
        VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, NULL, 0, 2, 1, &size};
    check(vkCreateDescriptorPool(h->device, &sets, NULL, &h->sets), "vkCreateDescriptorPool");
}

static host_buffer make_buffer(host *h, VkDeviceSize bytes) {
    host_buffer b;
    // Storage and transfer usage, and an address: what gn_vulkan_wrap asks for.
    VkBufferCreateInfo info = {
        VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        NULL,
        0,
        bytes,
        VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
            VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT,
        VK_SHARING_MODE_EXCLUSIVE,
        0,
        NULL};
    check(vkCreateBuffer(h->device, &info, NULL, &b.buffer), "vkCreateBuffer");
    VkMemoryRequirements need;
    vkGetBufferMemoryRequirements(h->device, b.buffer, &need);
    VkPhysicalDeviceMemoryProperties memory;
    vkGetPhysicalDeviceMemoryProperties(h->physical, &memory);
    uint32_t type = 0;
    for (uint32_t i = memory.memoryTypeCount; i-- > 0;)
        if ((need.memoryTypeBits >> i & 1u) &&
            (memory.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT))
            type = i;
    VkMemoryAllocateFlagsInfo flags = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO, NULL,
                                       VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT, 0};
    VkMemoryAllocateInfo allocate = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &flags, need.size,
                                     type};
    check(vkAllocateMemory(h->device, &allocate, NULL, &b.memory), "vkAllocateMemory");
    check(vkBindBufferMemory(h->device, b.buffer, b.memory, 0), "vkBindBufferMemory");
    return b;
}

// ---- the host's pass over a part of a buffer

static void record_pass(host *h, VkCommandBuffer commands, VkBuffer buffer, VkDeviceSize offset,
                        VkDeviceSize bytes, uint32_t pass, float time) {
    VkDescriptorSetAllocateInfo info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, NULL,
                                        h->sets, 1, &h->set_layout};
    VkDescriptorSet set;
    check(vkAllocateDescriptorSets(h->device, &info, &set), "vkAllocateDescriptorSets");
    VkDescriptorBufferInfo range = {buffer, offset, bytes};
    VkWriteDescriptorSet write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, NULL, set,    0,   0, 1,
                                  VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,      NULL, &range, NULL};
    vkUpdateDescriptorSets(h->device, 1, &write, 0, NULL);
    struct {
        uint32_t count;
        float time;
        uint32_t pass;
    } push = {COUNT, time, pass};
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, h->pipeline);
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, h->layout, 0, 1, &set, 0,
                            NULL);
    vkCmdPushConstants(commands, h->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
    vkCmdDispatch(commands, (COUNT + 63) / 64, 1, 1);
}

// Orders compute passes, and the transfers around them, after each other.
static void record_barrier(VkCommandBuffer commands) {
    VkMemoryBarrier all = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL,
                           VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                           VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                               VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
    VkPipelineStageFlags stages =
        VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    vkCmdPipelineBarrier(commands, stages, stages, 0, 1, &all, 0, NULL, 0, NULL);
}

static gn_context *open_gpunum(const host *h) {
    gn_vulkan_host vulkan;
    memset(&vulkan, 0, sizeof vulkan);
    vulkan.instance = h->instance;
    vulkan.physical_device = h->physical;
    vulkan.device = h->device;
    vulkan.queue = h->queue;
    vulkan.queue_family = h->family;
    vulkan.api_version = VK_API_VERSION_1_2;
    memcpy(&vulkan.get_instance_proc_addr, &vkGetInstanceProcAddr, sizeof(void *));
    vulkan.timeline_semaphore = vulkan.buffer_device_address = true;
    gn_options options;
    memset(&options, 0, sizeof options);
    options.backend = GN_BACKEND_VULKAN;
    options.vulkan = &vulkan;
    options.vulkan_flags = GN_VULKAN_NO_ASYNC_PIPELINES; // no threads of its own inside the engine
    gn_context *g = gn_open(&options);
    if (g == NULL) {
        fprintf(stderr, "%s\n", gn_open_error());
        exit(1);
    }
    return g;
}

// One frame: the host's pass, gpunum's work on the same buffer, the host's pass on gpunum's result.
// Returns the result, which stays on the device.
static gn_array *record_frame(host *h, gn_context *g, VkCommandBuffer commands, VkBuffer heights,
                              float time, uint64_t *ticket) {
    uint64_t buffer = 0, offset = 0, size = 0, shared = 0;
    memcpy(&shared, &heights, sizeof heights);
    gn_array *x = gn_vulkan_wrap(g, shared, 0, GN_F32, GN_SHAPE(COUNT));
    gn_array *y = gn_to(gn_zeros(g, GN_F32, GN_SHAPE(COUNT)), GN_DEVICE_GPU);
    gn_vulkan_buffer(y, &buffer, &offset, &size);

    record_pass(h, commands, heights, 0, VK_WHOLE_SIZE, 0, time);
    record_barrier(commands);
    gn_vulkan_record_begin(g, commands);
    gn_scope_begin(g);
    gn_array *standard = gn_div(gn_sub(x, gn_mean(x, GN_ALL)), gn_std(x, GN_ALL, 0));
    gn_set(&y, gn_keep(gn_eval(standard)));
    gn_scope_end(g);
    gn_vulkan_record_end(g, ticket);
    gn_vulkan_buffer(y, &buffer, &offset, &size);
    VkBuffer result;
    memcpy(&result, &buffer, sizeof result);
    record_barrier(commands);
    record_pass(h, commands, result, offset, size, 1, time);
    gn_release(x);
    return y;
}

int main(void) {
    host h;
    memset(&h, 0, sizeof h);
    make_device(&h);
    make_pass(&h);
    host_buffer heights = make_buffer(&h, COUNT * sizeof(float));
    gn_context *g = open_gpunum(&h);
    gn_device_info info;
    gn_device_get(g, &info);
    printf("host and gpunum share %s\n", info.name);

    VkCommandBufferAllocateInfo cai = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, NULL, h.pool,
                                       VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
    VkCommandBuffer commands;
    check(vkAllocateCommandBuffers(h.device, &cai, &commands), "vkAllocateCommandBuffers");
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, NULL,
                                      VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, NULL};
    check(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
    uint64_t ticket = 0;
    gn_array *y = record_frame(&h, g, commands, heights.buffer, 0.5f, &ticket);
    check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
    VkSubmitInfo submit = {
        VK_STRUCTURE_TYPE_SUBMIT_INFO, NULL, 0, NULL, NULL, 1, &commands, 0, NULL};
    check(vkQueueSubmit(h.queue, 1, &submit, VK_NULL_HANDLE), "vkQueueSubmit");
    check(vkQueueWaitIdle(h.queue), "vkQueueWaitIdle");
    gn_vulkan_record_done(g, ticket);

    // The same on the CPU, in double.
    float *got = (float *)malloc(COUNT * sizeof(float));
    double mean = 0.0, square = 0.0, worst = 0.0;
    gn_read(y, got, COUNT * sizeof(float));
    for (int i = 0; i < COUNT; i++)
        mean += 3.0 + sin(i * 0.01 + 0.5) + 0.5 * cos(2.7 * i * 0.01 - 0.5);
    mean /= COUNT;
    for (int i = 0; i < COUNT; i++) {
        double v = 3.0 + sin(i * 0.01 + 0.5) + 0.5 * cos(2.7 * i * 0.01 - 0.5) - mean;
        square += v * v;
    }
    for (int i = 0; i < COUNT; i++) {
        double v = (3.0 + sin(i * 0.01 + 0.5) + 0.5 * cos(2.7 * i * 0.01 - 0.5) - mean) /
                   sqrt(square / COUNT);
        v = v < -1.0 ? -1.0 : v > 1.0 ? 1.0 : v;
        worst = fmax(worst, fabs(v - (double)got[i]));
    }
    free(got);
    int failed = gn_status_get(g) != GN_OK ||
                 !(worst < 2e-2); // the host's sin is the driver's, not gpunum's
    printf(
        "%d heights standardised and clamped on the device, largest difference from the CPU %.2g\n",
        COUNT, worst);
    if (gn_status_get(g) != GN_OK) fprintf(stderr, "%s\n", gn_error(g));

    gn_release(y);
    gn_close(g); // before the device it uses
    vkDestroyBuffer(h.device, heights.buffer, NULL);
    vkFreeMemory(h.device, heights.memory, NULL);
    vkDestroyDescriptorPool(h.device, h.sets, NULL);
    vkDestroyPipeline(h.device, h.pipeline, NULL);
    vkDestroyPipelineLayout(h.device, h.layout, NULL);
    vkDestroyDescriptorSetLayout(h.device, h.set_layout, NULL);
    vkDestroyCommandPool(h.device, h.pool, NULL);
    vkDestroyDevice(h.device, NULL);
    vkDestroyInstance(h.instance, NULL);
    return failed;
}
