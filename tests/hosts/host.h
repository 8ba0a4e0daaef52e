// A program with a Vulkan device of its own, whichever way it got its vk functions; each .c beside
// this brings Vulkan and gpunum in in another order, then this. gpunum adopts the device and computes on it,
// the host's own pointers or prototypes keep working, and both give the numbers that they should.

#include <stdio.h>
#include <string.h>

static int host_fails(const char *what) {
    printf("FAILED: %s\n", what);
    return 1;
}

// Returns the queue family, or -1.
static int host_device(VkInstance instance, VkPhysicalDevice *physical, VkDevice *device) {
    uint32_t count = 1, families = 16;
    VkQueueFamilyProperties family[16];
    VkResult r = vkEnumeratePhysicalDevices(instance, &count, physical);
    if ((r != VK_SUCCESS && r != VK_INCOMPLETE) || count == 0) return -1;
    vkGetPhysicalDeviceQueueFamilyProperties(*physical, &families, family);
    int index = 0;
    while (index < (int)families && (family[index].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) index++;
    if (index == (int)families) return -1;
    float priority = 1.0f;
    VkDeviceQueueCreateInfo queue;
    memset(&queue, 0, sizeof queue);
    queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue.queueFamilyIndex = (uint32_t)index;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkPhysicalDeviceVulkan12Features features;
    memset(&features, 0, sizeof features);
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    features.timelineSemaphore = VK_TRUE;
    features.bufferDeviceAddress = VK_TRUE;
    VkDeviceCreateInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.pNext = &features;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    return vkCreateDevice(*physical, &info, NULL, device) == VK_SUCCESS ? index : -1;
}

// Whether gpunum on that device sums 1 to 1000.
static bool host_computes(gn_vulkan_host *vulkan) {
    gn_options o = {0};
    o.backend = GN_BACKEND_VULKAN;
    o.placement = GN_PLACE_GPU;
    o.vulkan = vulkan;
    gn_context *g = gn_open(&o);
    if (g == NULL) {
        printf("%s\n", gn_open_error());
        return false;
    }
    gn_device_info d;
    gn_device_get(g, &d);
    gn_array *y = gn_sum(gn_add_s(gn_arange(g, GN_F32, 0, 1000, 1), 1), GN_ALL);
    double sum = gn_item(y);
    bool right = d.backend == GN_BACKEND_VULKAN && sum == 500500;
    printf("%s on %s: %g %s %s\n", gn_explain(y), d.name, sum, d.why, gn_error(g));
    gn_close(g);
    return right;
}

int main(void) {
    VkApplicationInfo app;
    memset(&app, 0, sizeof app);
    app.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    app.apiVersion = VK_API_VERSION_1_2;
    VkInstanceCreateInfo info;
    memset(&info, 0, sizeof info);
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &app;
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    if (HOST_INIT() != VK_SUCCESS || vkCreateInstance(&info, NULL, &instance) != VK_SUCCESS)
        return host_fails("vkCreateInstance");
    HOST_LOAD_INSTANCE(instance);
    int family = host_device(instance, &physical, &device);
    if (family < 0) return host_fails("vkCreateDevice");
    VkQueue queue;
    vkGetDeviceQueue(device, (uint32_t)family, 0, &queue);
    gn_vulkan_host vulkan = {0};
    vulkan.instance = (void *)instance;
    vulkan.physical_device = (void *)physical;
    vulkan.device = (void *)device;
    vulkan.queue = (void *)queue;
    vulkan.queue_family = (uint32_t)family;
    vulkan.timeline_semaphore = vulkan.buffer_device_address = true;
    // Twice: gpunum leaves the host's device as it was. Once with its own root, once with the host's.
    if (!host_computes(&vulkan)) return host_fails("gpunum on the host's device");
    PFN_vkGetInstanceProcAddr root = vkGetInstanceProcAddr;
    memcpy(&vulkan.get_instance_proc_addr, &root, sizeof root);
    if (!host_computes(&vulkan)) return host_fails("gpunum with the host's vkGetInstanceProcAddr");
    // And beside the host's device one of gpunum's own.
    if (!host_computes(NULL)) return host_fails("gpunum on a device of its own");
    // The host's functions are still the host's.
    VkPhysicalDeviceProperties p;
    vkGetPhysicalDeviceProperties(physical, &p);
    if (vkDeviceWaitIdle(device) != VK_SUCCESS) return host_fails("vkDeviceWaitIdle");
    vkDestroyDevice(device, NULL);
    vkDestroyInstance(instance, NULL);
    printf("passed on %s\n", p.deviceName);
    return 0;
}
