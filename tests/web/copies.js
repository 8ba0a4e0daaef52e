// A WebGPU for node that keeps buffers and copies them, and whose kernels leave what is there, zeros at first: what waits for
// a device can be tried with it. Every promise is kept turns of the loop later, so that a program which does not wait gets nothing.
{
    const later = value => new Promise(done => setTimeout(() => done(value), 2));
    const buffer = ({ size }) => ({
        bytes: new Uint8Array(size), mapState: 'unmapped',
        mapAsync() {
            this.mapState = 'pending';
            return later().then(() => { this.mapState = 'mapped'; });
        },
        getMappedRange(offset, size) { return this.bytes.buffer.slice(offset, offset + size); },
        unmap() { this.mapState = 'unmapped'; },
        destroy() {},
    });
    const nothing = () => ({}), pass = { setPipeline() {}, setBindGroup() {}, dispatchWorkgroups() {}, end() {} };
    const encoder = () => {
        const work = [];
        return {
            copyBufferToBuffer: (from, at, to, where, size) => work.push(() => to.bytes.set(from.bytes.subarray(at, at + size), where)),
            clearBuffer: (b, at, size) => work.push(() => b.bytes.fill(0, at, at + size)),
            beginComputePass: () => pass,
            finish: () => work,
        };
    };
    const limits = { maxComputeInvocationsPerWorkgroup: 256, maxComputeWorkgroupSizeX: 256, maxComputeWorkgroupSizeY: 256,
        maxComputeWorkgroupSizeZ: 64, maxComputeWorkgroupsPerDimension: 65535, maxComputeWorkgroupStorageSize: 16384,
        maxStorageBuffersPerShaderStage: 8, maxStorageBufferBindingSize: 1 << 27, maxBufferSize: 1 << 28 };
    const queue = {
        writeBuffer: (b, offset, data, at, size) => b.bytes.set(data.subarray(at, at + size), offset),
        submit: lists => lists.flat().forEach(f => f()),
        onSubmittedWorkDone: () => later(),
    };
    const device = { limits, queue, lost: new Promise(() => {}), addEventListener() {}, createBuffer: buffer, createCommandEncoder: encoder,
        createShaderModule: nothing, createBindGroupLayout: nothing, createPipelineLayout: nothing, createComputePipeline: nothing,
        createBindGroup: nothing, destroy() {} };
    const adapter = { limits, info: { description: 'copies' }, requestDevice: () => later(device) };
    Object.defineProperty(globalThis.navigator, 'gpu', { value: { requestAdapter: () => later(adapter) } });
}
