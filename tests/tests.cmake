# Every tests/test_NAME.c is one cmocka program, run on each backend: NAME.cpu and NAME.vulkan.
# It finds in its environment
#   GN_TEST_BACKEND   cpu or vulkan
#   GN_SOURCE_DIR     this repository
#   GN_PYTHON         a Python that has NumPy, or empty
#   GN_CASES          a folder of what NumPy and SciPy say, made once for all of them
#   GN_REQUIRE_ALL    set where a test that has not what it needs fails, instead of being skipped
#   GN_TEST_AGAIN     set where another build runs all cases: some of them then
# and runs in a folder of its own.

find_path(GPUNUM_CMOCKA_INCLUDE_DIR cmocka.h)
find_library(GPUNUM_CMOCKA_LIBRARY cmocka)
mark_as_advanced(GPUNUM_CMOCKA_INCLUDE_DIR GPUNUM_CMOCKA_LIBRARY)

# The first Python on the PATH is not always the one that the distribution's NumPy and SciPy belong to. One that has
# both comes before one with NumPy alone.
if(NOT DEFINED CACHE{GPUNUM_PYTHON})
    find_program(first python3)
    mark_as_advanced(first)
    set(found "")
    foreach(needed "numpy, scipy" numpy)
        foreach(python ${first} /usr/bin/python3)
            if(NOT found)
                execute_process(COMMAND ${python} -c "import ${needed}" RESULT_VARIABLE failed
                    OUTPUT_QUIET ERROR_QUIET)
                if(NOT failed)
                    set(found ${python})
                endif()
            endif()
        endforeach()
    endforeach()
    set(GPUNUM_PYTHON "${found}" CACHE FILEPATH "A Python that has NumPy")
endif()

# Vulkan tests run on Mesa's CPU driver, under the validation layer with synchronisation validation
# where it is installed; GPUNUM_TEST_ICD names another driver's manifest, "system" takes what is there.
# What tests/lavapipe.sh fetched comes before the host's.
set(GPUNUM_TEST_ICD "" CACHE STRING "Vulkan driver manifest for the tests, or: system; empty: lavapipe's")
set(icd "${GPUNUM_TEST_ICD}")
set(fetched ${PROJECT_SOURCE_DIR}/build/lavapipe)
set(on_fetched "")
if(NOT icd AND EXISTS ${fetched}/lavapipe.json)
    set(icd ${fetched}/lavapipe.json)
    set(on_fetched ${fetched}/run)
elseif(NOT icd)
    file(GLOB icd /usr/share/vulkan/icd.d/lvp_icd*.json /usr/local/share/vulkan/icd.d/lvp_icd*.json)
    if(icd)
        list(GET icd 0 icd)
    endif()
endif()
find_file(GPUNUM_VALIDATION_LAYER VkLayer_khronos_validation.json
    PATHS /usr/share/vulkan/explicit_layer.d /usr/local/share/vulkan/explicit_layer.d
    $ENV{VULKAN_SDK}/share/vulkan/explicit_layer.d)
mark_as_advanced(GPUNUM_VALIDATION_LAYER)

# With GPUNUM_REQUIRE_ALL, which CI sets, nothing is left out silently.
option(GPUNUM_REQUIRE_ALL "Fail where a test or check would be left out" OFF)
function(gpunum_required what)
    foreach(found ${ARGN})
        if(NOT ${found} AND GPUNUM_REQUIRE_ALL)
            message(FATAL_ERROR "gpunum: GPUNUM_REQUIRE_ALL is set, and there is no ${what}")
        endif()
    endforeach()
endfunction()
gpunum_required("cmocka" GPUNUM_CMOCKA_INCLUDE_DIR GPUNUM_CMOCKA_LIBRARY)
gpunum_required("Python with NumPy" GPUNUM_PYTHON)
gpunum_required("Vulkan header" GPUNUM_VULKAN_INCLUDE_DIR)
gpunum_required("volk" GPUNUM_VOLK_SOURCE)
gpunum_required("lavapipe" icd)
gpunum_required("Vulkan validation layer" GPUNUM_VALIDATION_LAYER)

set(validation_messages "Validation Error|Validation Warning|VUID-|SYNC-HAZARD|UNASSIGNED")
set(common "GN_SOURCE_DIR=${PROJECT_SOURCE_DIR}" "GN_PYTHON=${GPUNUM_PYTHON}")
if(GPUNUM_REQUIRE_ALL)
    list(APPEND common GN_REQUIRE_ALL=1)
endif()
# What NumPy and SciPy say, once for all programs, builds and backends: another build folder names this one's.
set(GPUNUM_CASES "" CACHE PATH "Folder of case files that another build has made; empty: make them")
set(cases "")
if(GPUNUM_CASES)
    list(APPEND common "GN_CASES=${GPUNUM_CASES}" GN_TEST_AGAIN=1)
elseif(GPUNUM_PYTHON)
    list(APPEND common "GN_CASES=${PROJECT_BINARY_DIR}/cases")
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/cases)
    execute_process(COMMAND ${GPUNUM_PYTHON} -c "import scipy" RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    set(names ops print create random views arrays order index curves linalg)
    if(NOT failed)
        list(APPEND names fft)
    elseif(GPUNUM_REQUIRE_ALL)
        message(FATAL_ERROR "gpunum: GPUNUM_REQUIRE_ALL is set, and there is no SciPy")
    endif()
    foreach(name ${names})
        set(file ${PROJECT_BINARY_DIR}/cases/${name}.cases)
        set(script ${PROJECT_SOURCE_DIR}/tests/make_cases.py)
        set(what ${name})
        if(name MATCHES "^(fft|linalg)$")
            set(script ${PROJECT_SOURCE_DIR}/tests/make_${name}.py)
            set(what "")
        endif()
        add_custom_command(OUTPUT ${file} COMMAND ${GPUNUM_PYTHON} ${script} ${what} ${file}.new
            COMMAND ${CMAKE_COMMAND} -E rename ${file}.new ${file} DEPENDS ${script} VERBATIM)
        add_custom_target(gpunum_cases_${name} DEPENDS ${file})
        list(APPEND cases gpunum_cases_${name})
    endforeach()
    # ONNX's own tests of its operators.
    find_path(GPUNUM_ONNX_TESTS test_abs/model.onnx PATHS /usr/share/libonnx-testdata/data/node NO_DEFAULT_PATH)
    mark_as_advanced(GPUNUM_ONNX_TESTS)
    gpunum_required("libonnx-testdata" GPUNUM_ONNX_TESTS)
    if(GPUNUM_ONNX_TESTS)
        set(file ${PROJECT_BINARY_DIR}/cases/onnx.cases)
        set(script ${PROJECT_SOURCE_DIR}/tests/make_onnx.py)
        add_custom_command(OUTPUT ${file} COMMAND ${GPUNUM_PYTHON} ${script} ${GPUNUM_ONNX_TESTS} ${file}.new
            COMMAND ${CMAKE_COMMAND} -E rename ${file}.new ${file}
            DEPENDS ${script} ${PROJECT_SOURCE_DIR}/tests/make_cases.py VERBATIM)
        add_custom_target(gpunum_cases_onnx DEPENDS ${file})
        list(APPEND cases gpunum_cases_onnx)
    endif()
    add_custom_target(gpunum_cases ALL)
    add_dependencies(gpunum_cases ${cases})
endif()
# The C library keeps what tests free: new pages from the system take a third of the time of those with large arrays.
set(on_cpu GN_TEST_BACKEND=cpu ${common} MALLOC_MMAP_THRESHOLD_=4000000000 MALLOC_TRIM_THRESHOLD_=4000000000)
if(GPUNUM_SANITIZE)
    # Listing devices loads every driver, and some leak. Large pages for its shadow take up to a quarter off the thread sanitizer, and
    # that pages stay with it a quarter off the address sanitizer's allocation.
    list(APPEND on_cpu VK_DRIVER_FILES=none VK_ICD_FILENAMES=none TSAN_OPTIONS=no_huge_pages_for_shadow=0
        ASAN_OPTIONS=allocator_release_to_os_interval_ms=-1)
endif()
# Programs use again what lavapipe compiled for another one, in a folder for each width of vectors.
set(kernels ${PROJECT_BINARY_DIR}/lavapipe)
if(GPUNUM_CASES) # of a build that has been there before this one
    set(kernels ${GPUNUM_CASES}/../lavapipe)
endif()
set(on_vulkan GN_TEST_BACKEND=vulkan ${common})
if(icd AND NOT icd STREQUAL "system")
    list(APPEND on_vulkan "VK_DRIVER_FILES=${icd}" "VK_ICD_FILENAMES=${icd}")
endif()
if(on_fetched) # its own layers too
    list(APPEND on_vulkan VK_LAYER_PATH=${fetched}/root/usr/share/vulkan/explicit_layer.d)
endif()
if(GPUNUM_SANITIZE)
    list(APPEND on_vulkan LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/lsan.supp:print_suppressions=0
        TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp:no_huge_pages_for_shadow=0)
elseif(GPUNUM_VALIDATION_LAYER)
    # Both spellings: settings that older and newer layers read.
    file(WRITE ${PROJECT_BINARY_DIR}/validation/vk_layer_settings.txt
        "khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG\n"
        "khronos_validation.report_flags = error,warn\n"
        "khronos_validation.log_filename = stdout\n"
        "khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT\n"
        "khronos_validation.validate_sync = true\n")
    list(APPEND on_vulkan VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
        VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
        VK_LAYER_SETTINGS_PATH=${PROJECT_BINARY_DIR}/validation/vk_layer_settings.txt)
endif()
# Of the tests on Vulkan a sanitizer repeats those that go through the rooms of vulkan/ and gpu/ once.
# Products in parts (split) take three minutes under the thread sanitizer, and have no thread of their own.
# Under it profile would compile pipelines for two minutes, of which log compiles some.
set(sanitized create log)
if(NOT GPUNUM_SANITIZE STREQUAL "thread")
    list(APPEND sanitized profile split)
endif()
set(GPUNUM_SANITIZE_VULKAN "${sanitized}" CACHE STRING "Tests that a build with GPUNUM_SANITIZE runs on Vulkan as well")
if(NOT GPUNUM_VULKAN_INCLUDE_DIR OR NOT icd)
    set(GPUNUM_TEST_VULKAN OFF)
endif()
if(GPUNUM_TEST_VULKAN AND NOT GPUNUM_VALIDATION_LAYER)
    message(WARNING "gpunum: no Vulkan validation layer, the tests run without it")
endif()

# Where addresses are randomised far, gcc's thread sanitizer finds its own memory taken.
set(launcher "")
if(GPUNUM_SANITIZE STREQUAL "thread")
    execute_process(COMMAND setarch -R true RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(NOT failed)
        set(launcher setarch -R)
    endif()
endif()

# The longest start first, so that all cores end together.
set(test_seconds "")
if(EXISTS ${PROJECT_SOURCE_DIR}/tests/seconds.txt)
    file(STRINGS ${PROJECT_SOURCE_DIR}/tests/seconds.txt test_seconds REGEX "^[^#]")
endif()

function(gpunum_test name label environment)
    set(folder ${PROJECT_BINARY_DIR}/run/${name})
    file(MAKE_DIRECTORY ${folder})
    add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${folder})
    set_tests_properties(${name} PROPERTIES LABELS ${label} ENVIRONMENT "${environment}"
        TIMEOUT 1200)
    foreach(line ${test_seconds})
        if(line MATCHES "^${name} ([0-9]+)$")
            set_tests_properties(${name} PROPERTIES COST ${CMAKE_MATCH_1})
        endif()
    endforeach()
endfunction()

# lavapipe compiles in half the time without LLVM's passes and with vectors of 128 bits, where a subgroup has 4 invocations.
# In these it has 8, of 256 bits: each kind of kernel with subgroups is in one of them. For other tests LLVM 19 ends with an
# error ("Cannot emit physreg copy instruction") at 256 bits where the CPU has AVX512-FP16.
set(wide_subgroups conv eigen_gpu index norm random sequences vulkan)

# One that runs on Vulkan; what the validation layer says is a failure.
function(gpunum_vulkan_test name)
    set(how "MESA_SHADER_CACHE_DIR=${kernels}_128" LP_NATIVE_VECTOR_WIDTH=128)
    string(REPLACE ".vulkan" "" short ${name})
    if(short IN_LIST wide_subgroups)
        set(how "MESA_SHADER_CACHE_DIR=${kernels}")
    endif()
    gpunum_test(${name} lavapipe "${on_vulkan};GALLIVM_PERF=nopt;${how}" ${launcher} ${on_fetched} ${ARGN})
    set_tests_properties(${name} PROPERTIES FAIL_REGULAR_EXPRESSION "${validation_messages}")
endfunction()

if(GPUNUM_CMOCKA_INCLUDE_DIR AND GPUNUM_CMOCKA_LIBRARY)
    # What test_names.c includes is made out of the header.
    find_package(Python3 COMPONENTS Interpreter)
    file(GLOB rooms CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/gpunum/api/*.h)
    if(Python3_FOUND)
        add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/names/names.h
            COMMAND ${CMAKE_C_COMPILER} -E -P -std=c99 -o names.i
                -x c ${PROJECT_SOURCE_DIR}/tools/gpunum/gpunum.h
            COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/make_names.py names.i
                ${PROJECT_SOURCE_DIR}/tools/gpunum/api names.h
            DEPENDS ${PROJECT_SOURCE_DIR}/tests/make_names.py ${rooms}
            WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/names VERBATIM)
        file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/names)
    endif()

    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/test_*.c)
    foreach(source ${sources})
        if(source MATCHES "/test_names.c$")
            if(NOT Python3_FOUND)
                continue()
            endif()
            set_source_files_properties(${source} PROPERTIES
                OBJECT_DEPENDS ${PROJECT_BINARY_DIR}/names/names.h
                COMPILE_OPTIONS -I${PROJECT_BINARY_DIR}/names)
        endif()
        # Small arrays, of which one thread does all, or (prologue) the products that matmul has: nothing for the thread sanitizer.
        # The address sanitizer watches those.
        if(GPUNUM_SANITIZE STREQUAL "thread" AND source MATCHES
            "test_(allocation|augment|autograd|create|leaves|losses|models|names|onnx|ops|pool|precision|print|prologue|shapes|standard|train|unpack)[.]c$")
            continue()
        endif()
        if(source MATCHES "test_webgpu")
            continue() # below
        endif()
        get_filename_component(target ${source} NAME_WE)
        string(REGEX REPLACE "^test_" "" name ${target})
        set(which "")
        if(name MATCHES "^(learn|split|vulkan)$") # see private names, and share the program that holds the implementation
            set(which ${name})
            add_custom_target(test_${name})
            add_dependencies(test_${name} test_inside)
            set(source ${PROJECT_SOURCE_DIR}/tests/test_inside.c)
            set(target test_inside)
        elseif(name STREQUAL "inside")
            continue()
        endif()
        if(NOT TARGET ${target})
            if(which AND GPUNUM_SANITIZE AND NOT MSVC)
                # Compiling the implementation once takes a minute: all programs have it out of this one.
                set_property(TARGET gpunum_implementation PROPERTY SOURCES ${source})
                target_compile_definitions(gpunum_implementation PRIVATE GPUNUM_PART=1 GN_TEST_INSIDE=gn_test_inside)
                target_include_directories(gpunum_implementation SYSTEM PRIVATE ${GPUNUM_CMOCKA_INCLUDE_DIR})
                target_link_libraries(gpunum_implementation PRIVATE ${GPUNUM_CMOCKA_LIBRARY})
                set(source ${PROJECT_BINARY_DIR}/test_inside.c)
                file(WRITE ${source} "int gn_test_inside(int argc, char **argv);\n"
                    "int main(int argc, char **argv) { return gn_test_inside(argc, argv); }\n")
            endif()
            gpunum_program(${source})
            if(${target}_SKIPPED)
                continue()
            endif()
            target_include_directories(${target} SYSTEM PRIVATE ${GPUNUM_CMOCKA_INCLUDE_DIR})
            target_link_libraries(${target} PRIVATE ${GPUNUM_CMOCKA_LIBRARY})
            if(TARGET gpunum_cases_${name})
                add_dependencies(${target} gpunum_cases_${name})
            endif()
            if(GPUNUM_SANITIZE)
                target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/keep_libraries.c)
                target_link_options(${target} PRIVATE -rdynamic)
            endif()
        endif()
        gpunum_test(${name}.cpu cpu "${on_cpu}" ${launcher} $<TARGET_FILE:${target}> ${which})
        if(GPUNUM_TEST_VULKAN AND (NOT GPUNUM_SANITIZE OR name IN_LIST GPUNUM_SANITIZE_VULKAN))
            gpunum_vulkan_test(${name}.vulkan $<TARGET_FILE:${target}> ${which})
            # Interpreted: half of their time is lavapipe's compiling of elementwise programs (of linalg a sixth), which
            # ops, array, views, train and the fuzzers test. 4 is GN_VULKAN_NO_SPECIALIZATION.
            if(name MATCHES "^(arrays|augment|autograd|complex|conv|curves|eigen_gpu|fft|index|leaves|linalg|linalg_gpu|losses|norm|onnx|order|pool|random|range|safetensors|sequences|shapes|standard)$")
                set_property(TEST ${name}.vulkan APPEND PROPERTY ENVIRONMENT GN_TEST_VULKAN_FLAGS=4)
            endif()
        endif()
    endforeach()
    # The WebGPU layer through Dawn on lavapipe, under WebGPU's default limits, where tools/web/webgpu_setup.sh was run. The
    # packages bring a C library of their own, with which the program runs.
    set(GPUNUM_WEBGPU ${PROJECT_SOURCE_DIR}/build/webgpu CACHE PATH "Where tools/web/webgpu_setup.sh put Dawn")
    file(GLOB_RECURSE dawn ${GPUNUM_WEBGPU}/root/usr/lib/*/libwebgpu_dawn.so)
    if(dawn AND EXISTS ${GPUNUM_WEBGPU}/lavapipe.json AND NOT GPUNUM_SANITIZE AND GPUNUM_FROM_ROOMS)
        get_filename_component(dawn_lib ${dawn} DIRECTORY)
        file(GLOB dawn_loader ${dawn_lib}/ld-linux*)
        add_library(gpunum_dawn STATIC ${PROJECT_BINARY_DIR}/part_1.c)
        target_compile_definitions(gpunum_dawn PRIVATE GPUNUM_USE_WEBGPU)
        target_include_directories(gpunum_dawn SYSTEM PRIVATE ${GPUNUM_WEBGPU}/root/usr/include)
        target_link_libraries(gpunum_dawn PUBLIC gpunum_flags gpunum_passes ${dawn})
        if(NOT GPUNUM_TEST_VULKAN) # nothing runs it, see below
            target_compile_options(gpunum_dawn PRIVATE ${GPUNUM_OWN_FLAGS})
        endif()
        set_target_properties(gpunum_dawn PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
        # What adapters say to tests: nothing of their limits, and that they are GPUs, whose kernels are others than a CPU's.
        foreach(name defaults gpu)
            add_library(gpunum_dawn_${name} STATIC ${PROJECT_SOURCE_DIR}/tests/dawn_${name}.c)
            target_include_directories(gpunum_dawn_${name} SYSTEM PRIVATE ${GPUNUM_WEBGPU}/root/usr/include)
        endforeach()
        # The layer's speed beside Vulkan's: not run here.
        add_executable(webgpu_against_vulkan ${PROJECT_SOURCE_DIR}/tools/web/webgpu_against_vulkan.c)
        target_link_libraries(webgpu_against_vulkan PRIVATE gpunum_flags gpunum_dawn -Wl,--allow-shlib-undefined
            -Wl,--dynamic-linker=${dawn_loader})
        set_target_properties(webgpu_against_vulkan PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF BUILD_RPATH ${dawn_lib})
        # A minute in all, most of it lavapipe's compiling. GPUNUM_CHECKS runs the others, each of which takes that long alone.
        set(suites webgpu webgpu_gpu views index conv)
        option(GPUNUM_TEST_DAWN_MORE "More of the tests through Dawn, half an hour of them" OFF)
        if(GPUNUM_TEST_DAWN_MORE)
            # random asks NumPy while it runs, which cannot be started from under another C library.
            list(APPEND suites array arrays autograd complex create curves epilogue fft leaves losses matmul norm ops order pool prologue
                sequences train)
        endif()
        # Random programs, whose texts Tint reads.
        list(APPEND suites programs webgpu_limits webgpu_replay)
        if(NOT GPUNUM_TEST_VULKAN)
            set(suites "") # another compiler's build: what it says of the layer is enough
        endif()
        foreach(name ${suites})
            set(kind test)
            if(name STREQUAL "programs")
                set(kind fuzz)
            endif()
            string(REPLACE "webgpu_gpu" "webgpu" source ${name})
            add_executable(test_${name}_dawn ${PROJECT_SOURCE_DIR}/tests/${kind}_${source}.c)
            target_include_directories(test_${name}_dawn SYSTEM PRIVATE ${GPUNUM_CMOCKA_INCLUDE_DIR})
            set(implementation gpunum_dawn)
            if(name STREQUAL "webgpu_replay") # holds its own, and sees private names
                set(implementation gpunum_passes ${dawn})
                target_compile_definitions(test_${name}_dawn PRIVATE GPUNUM_USE_WEBGPU GPUNUM_PART=1)
                target_compile_options(test_${name}_dawn PRIVATE ${GPUNUM_OWN_FLAGS})
                target_include_directories(test_${name}_dawn SYSTEM PRIVATE ${GPUNUM_WEBGPU}/root/usr/include)
            endif()
            target_link_libraries(test_${name}_dawn PRIVATE gpunum_flags ${implementation} ${GPUNUM_CMOCKA_LIBRARY}
                -Wl,--allow-shlib-undefined -Wl,--dynamic-linker=${dawn_loader})
            set_target_properties(test_${name}_dawn PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
                BUILD_RPATH ${dawn_lib})
            # Under WebGPU's default limits, but for the first, which takes what the device has, and one on a smaller device.
            if(name STREQUAL "webgpu_limits")
                target_include_directories(test_${name}_dawn SYSTEM PRIVATE ${GPUNUM_WEBGPU}/root/usr/include)
                target_link_libraries(test_${name}_dawn PRIVATE
                    -Wl,--wrap=wgpuDeviceGetLimits,--wrap=wgpuDeviceCreateBindGroup)
            elseif(NOT name STREQUAL "webgpu")
                target_link_libraries(test_${name}_dawn PRIVATE gpunum_dawn_defaults -Wl,--wrap=wgpuAdapterGetLimits)
            endif()
            if(name STREQUAL "webgpu_gpu")
                target_link_libraries(test_${name}_dawn PRIVATE gpunum_dawn_gpu -Wl,--wrap=wgpuAdapterGetInfo)
            endif()
            if(TARGET gpunum_cases_${name})
                add_dependencies(test_${name}_dawn gpunum_cases_${name})
            endif()
            gpunum_test(${name}.dawn lavapipe
                "GN_TEST_BACKEND=webgpu;${common};LD_LIBRARY_PATH=${dawn_lib};VK_ICD_FILENAMES=${GPUNUM_WEBGPU}/lavapipe.json;VK_DRIVER_FILES=${GPUNUM_WEBGPU}/lavapipe.json;MESA_SHADER_CACHE_DIR=${kernels}"
                $<TARGET_FILE:test_${name}_dawn>)
            set_tests_properties(${name}.dawn PROPERTIES TIMEOUT 900)
            # LLVM 22 takes a quarter of a minute for each transform otherwise. Older ones lose as much in what they make.
            set_property(TEST ${name}.dawn APPEND PROPERTY ENVIRONMENT GALLIVM_PERF=nopt)
            if(name STREQUAL "webgpu_gpu")
                set_property(TEST ${name}.dawn APPEND PROPERTY ENVIRONMENT GN_TEST_AS_GPU=1)
            endif()
            if(kind STREQUAL "fuzz")
                set_property(TEST ${name}.dawn APPEND PROPERTY ENVIRONMENT GPUNUM_FUZZ_SECONDS=8 GPUNUM_FUZZ_SEED=20260922)
            endif()
        endforeach()
    endif()
    # Random calls, programs and damaged files, each for GPUNUM_FUZZ_SECONDS of the environment. CTest begins with one seed, so that no
    # change fails by what another one did; a program that is run by itself takes another seed every time.
    set(GPUNUM_FUZZ_SECONDS "" CACHE STRING "Seconds of each fuzzer; empty: what the environment says")
    set(GPUNUM_FUZZ_SEED 20260922 CACHE STRING "Seed of the first case; the next ones follow")
    set(seed GPUNUM_FUZZ_SEED=${GPUNUM_FUZZ_SEED})
    if(GPUNUM_FUZZ_SECONDS)
        list(APPEND seed GPUNUM_FUZZ_SECONDS=${GPUNUM_FUZZ_SECONDS})
    endif()
    foreach(name calls programs files)
        if(name STREQUAL "files" AND GPUNUM_SANITIZE STREQUAL "thread")
            continue() # one thread
        endif()
        set(target fuzz_${name})
        gpunum_program(${PROJECT_SOURCE_DIR}/tests/${target}.c)
        target_include_directories(${target} SYSTEM PRIVATE ${GPUNUM_CMOCKA_INCLUDE_DIR})
        target_link_libraries(${target} PRIVATE ${GPUNUM_CMOCKA_LIBRARY})
        gpunum_test(fuzz.${name}.cpu cpu "${on_cpu};${seed}" ${launcher} $<TARGET_FILE:${target}>)
        if(GPUNUM_TEST_VULKAN AND NOT GPUNUM_SANITIZE AND NOT name STREQUAL "files")
            gpunum_vulkan_test(fuzz.${name}.vulkan $<TARGET_FILE:${target}>)
            set_property(TEST fuzz.${name}.vulkan APPEND PROPERTY ENVIRONMENT ${seed})
        endif()
    endforeach()
    # The matrix product again, by way of a BLAS.
    find_library(GPUNUM_OPENBLAS openblas)
    mark_as_advanced(GPUNUM_OPENBLAS)
    if(GPUNUM_OPENBLAS AND NOT GPUNUM_SANITIZE AND NOT GPUNUM_CASES) # of the first build: the implementation once more
        add_executable(test_matmul_cblas
            ${PROJECT_SOURCE_DIR}/tests/test_matmul_cpu.c ${PROJECT_BINARY_DIR}/part_1.c)
        set_target_properties(test_matmul_cblas PROPERTIES
            C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
        target_compile_definitions(test_matmul_cblas PRIVATE GPUNUM_USE_CBLAS)
        target_compile_options(test_matmul_cblas PRIVATE ${GPUNUM_OWN_FLAGS})
        target_include_directories(test_matmul_cblas SYSTEM PRIVATE ${GPUNUM_CMOCKA_INCLUDE_DIR})
        target_link_libraries(test_matmul_cblas PRIVATE
            gpunum_flags gpunum_passes ${GPUNUM_CMOCKA_LIBRARY} ${GPUNUM_OPENBLAS})
        gpunum_test(matmul_cblas.cpu cpu "${on_cpu}" $<TARGET_FILE:test_matmul_cblas>)
    endif()
else()
    message(WARNING "gpunum: no cmocka, the tests are left out")
endif()

# Programs with a Vulkan device of their own, see tests/hosts/host.h.
find_library(GPUNUM_VULKAN_LOADER vulkan)
mark_as_advanced(GPUNUM_VULKAN_LOADER)
if(GPUNUM_TEST_VULKAN AND NOT GPUNUM_SANITIZE)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/hosts/host_*.c)
    foreach(source ${sources})
        get_filename_component(target ${source} NAME_WE)
        if(target STREQUAL "host_volk" AND TARGET gpunum_volk)
            add_executable(${target} ${source})
            target_link_libraries(${target} PRIVATE gpunum_implementation)
        elseif(target STREQUAL "host_prototypes" AND GPUNUM_VULKAN_LOADER)
            add_executable(${target} ${source})
            target_link_libraries(${target} PRIVATE gpunum_flags_alone gpunum_passes ${GPUNUM_VULKAN_LOADER})
        elseif(target MATCHES "host_volk_" AND TARGET gpunum_volk)
            add_executable(${target} ${source})
            target_link_libraries(${target} PRIVATE gpunum_flags_alone gpunum_passes ${CMAKE_DL_LIBS})
            target_include_directories(${target} SYSTEM PRIVATE ${volk_dir})
        else()
            message(STATUS "gpunum: ${target} is left out, it needs volk or the Vulkan loader")
            continue()
        endif()
        target_compile_options(${target} PRIVATE ${GPUNUM_OWN_FLAGS})
        if(NOT target STREQUAL "host_volk") # holds the implementation itself, but for the SIMD passes, which know no Vulkan
            target_compile_definitions(${target} PRIVATE GPUNUM_PART=1)
        endif()
        set_target_properties(${target} PROPERTIES
            C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
        gpunum_vulkan_test(${target} $<TARGET_FILE:${target}>)
    endforeach()
    if(TARGET engine)
        gpunum_vulkan_test(example.engine $<TARGET_FILE:engine>)
    endif()
endif()
# The layer of C++.
gpunum_program(${PROJECT_SOURCE_DIR}/tests/test_cpp.cpp)
if(NOT MSVC)
    target_compile_options(test_cpp PRIVATE -fno-exceptions -fno-rtti)
endif()
gpunum_test(cpp.cpu cpu "${on_cpu}" $<TARGET_FILE:test_cpp>)

# Once, as the checks of the sources: not in the builds of the slow checks.
if(NOT GPUNUM_CASES)
    foreach(example quickstart autograd spectrum stft plate kmeans life histogram table filter particles regression montecarlo components)
        if(TARGET ${example})
            gpunum_test(example.${example} cpu "${on_cpu}" $<TARGET_FILE:${example}>)
        endif()
    endforeach()

    if(TARGET cifar10)
        gpunum_test(example.cifar10 cpu "${on_cpu}" ${PROJECT_SOURCE_DIR}/tests/check_cifar10.sh $<TARGET_FILE:cifar10>)
    endif()
    if(TARGET mnist_cnn) # on images that it makes up
        gpunum_test(example.mnist_cnn cpu "${on_cpu}" $<TARGET_FILE:mnist_cnn> --backend cpu --batch 32 --steps 12)
    endif()

    find_program(GPUNUM_TORCH_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH) # the distribution's, which may have PyTorch
    if(TARGET finetune AND GPUNUM_TORCH_PYTHON)
        gpunum_test(example.finetune cpu "${on_cpu}" ${GPUNUM_TORCH_PYTHON} ${PROJECT_SOURCE_DIR}/tests/check_finetune.py $<TARGET_FILE:finetune>)
        set_property(TEST example.finetune PROPERTY SKIP_RETURN_CODE 77)
    endif()
    if(TARGET gpt AND GPUNUM_PYTHON)
        gpunum_test(example.gpt cpu "${on_cpu}" ${GPUNUM_PYTHON} ${PROJECT_SOURCE_DIR}/tests/check_gpt.py $<TARGET_FILE:gpt>)
    endif()
endif()

# --- checks of the sources ----------------------------------------------------------------------

find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND AND NOT GPUNUM_SANITIZE AND NOT GPUNUM_CASES)
    gpunum_test(check.contents check "${common}"
        ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/check_toc.py)
    gpunum_test(check.joined check "${common}"
        ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/make_header.py --check)
    gpunum_test(check.rooms check "${common}"
        ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/rooms.py --check)
    gpunum_test(check.shaders check "${common}"
        ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/make_shaders.py --check)
    gpunum_test(check.shaders_wgsl check "${common}"
        ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/web/make_wgsl.py --check)
endif()

if(Python3_FOUND AND TARGET spectrum AND NOT GPUNUM_CASES)
    gpunum_test(check.spectrum check "${on_cpu}"
        ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/check_spectrum.py $<TARGET_FILE:spectrum>)
endif()

if(Python3_FOUND AND NOT GPUNUM_SANITIZE AND NOT MSVC)
    set(python ${GPUNUM_PYTHON}) # to compare with NumPy where there is one
    if(NOT python)
        set(python ${Python3_EXECUTABLE})
    endif()
    set(libraries $<TARGET_FILE:gpunum_implementation> $<TARGET_FILE:gpunum_passes>)
    if(TARGET gpunum_volk)
        list(APPEND libraries $<TARGET_FILE:gpunum_volk>)
    endif()
    gpunum_test(check.readme check "${common}" ${python} ${PROJECT_SOURCE_DIR}/tests/check_readme.py
        ${CMAKE_C_COMPILER} ${CMAKE_CXX_COMPILER} ${PROJECT_SOURCE_DIR}/tools/gpunum ${libraries})
endif()

if(TARGET ops_glsl AND NOT GPUNUM_SANITIZE AND NOT GPUNUM_CASES)
    gpunum_test(check.ops_glsl check "${common}" sh -c
        "\"$1\" >ops.glsl && cmp ops.glsl \"$2\"" check_ops_glsl $<TARGET_FILE:ops_glsl>
        ${PROJECT_SOURCE_DIR}/tools/shaders/ops.glsl)
endif()

# --- slow checks --------------------------------------------------------------------------------

if(GPUNUM_CHECKS)
    if(Python3_FOUND)
        gpunum_test(check.shaders_rebuilt check "${common}"
            ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/make_shaders.py --verify)
    endif()
    if(Python3_FOUND AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        gpunum_test(check.weight check "${common};CC=${CMAKE_C_COMPILER}"
            ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/weight.py --check)
    endif()
    if(Python3_FOUND)
        gpunum_test(check.wasm check "${common}"
            ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/web/check_wasm.py)
        gpunum_test(check.javascript check "${common}" ${PROJECT_SOURCE_DIR}/tests/web/check_javascript.sh)
        # The package that check.javascript has built.
        gpunum_test(check.pages check "${common}" ${PROJECT_SOURCE_DIR}/build/emscripten/bin/node
            ${PROJECT_SOURCE_DIR}/tests/web/check_pages.mjs)
        set_tests_properties(check.pages PROPERTIES SKIP_RETURN_CODE 77 DEPENDS "check.javascript" TIMEOUT 330)
        set_tests_properties(check.wasm check.javascript PROPERTIES RESOURCE_LOCK emscripten)
    endif()
    find_program(GPUNUM_AARCH64_CC aarch64-linux-gnu-gcc)
    find_program(GPUNUM_AARCH64_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
    mark_as_advanced(GPUNUM_AARCH64_CC GPUNUM_AARCH64_QEMU)
    gpunum_required("aarch64-linux-gnu-gcc" GPUNUM_AARCH64_CC)
    gpunum_required("qemu-aarch64" GPUNUM_AARCH64_QEMU)
    if(Python3_FOUND AND GPUNUM_AARCH64_CC AND GPUNUM_AARCH64_QEMU)
        gpunum_test(check.aarch64 check "${common}" ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/check_aarch64.py)
    else()
        message(STATUS "gpunum: check.aarch64 is left out, it needs aarch64-linux-gnu-gcc and qemu-aarch64")
    endif()
    gpunum_test(check.compile_matrix check "${common}" ${PROJECT_SOURCE_DIR}/tests/compile_matrix.sh)
    gpunum_test(check.install check "${common}" ${PROJECT_SOURCE_DIR}/tests/check_install.sh
        ${PROJECT_BINARY_DIR})

    # The whole test suite again, in a build folder of its own.
    function(gpunum_rebuild name)
        gpunum_test(check.${name} check "${common}" ${PROJECT_SOURCE_DIR}/tests/rebuild.sh
            ${PROJECT_BINARY_DIR}/${name} -DGPUNUM_PYTHON=${GPUNUM_PYTHON}
            -DGPUNUM_CASES=${PROJECT_BINARY_DIR}/cases -DGPUNUM_OWN_FLAGS=-O0 -DGPUNUM_REQUIRE_ALL=${GPUNUM_REQUIRE_ALL} ${ARGN})
        set_tests_properties(check.${name} PROPERTIES TIMEOUT 3000)
        # With a sanitizer what lavapipe compiles takes three times as long: these leave it in its cache.
        if(name MATCHES "sanitizer" AND GPUNUM_TEST_VULKAN)
            set_tests_properties(check.${name} PROPERTIES DEPENDS "create.vulkan;log.vulkan;profile.vulkan;split.vulkan")
        endif()
    endfunction()
    find_program(GPUNUM_CLANG clang)
    find_program(GPUNUM_CLANGXX clang++)
    mark_as_advanced(GPUNUM_CLANG GPUNUM_CLANGXX)
    if(GPUNUM_CLANG AND GPUNUM_CLANGXX)
        gpunum_rebuild(clang -DCMAKE_C_COMPILER=${GPUNUM_CLANG}
            -DCMAKE_CXX_COMPILER=${GPUNUM_CLANGXX} -DGPUNUM_WARNINGS_AS_ERRORS=ON
            -DGPUNUM_TEST_VULKAN=OFF -DGPUNUM_BUILD_TOOLS=OFF -DCMAKE_C_FLAGS_RELEASE=-O1
            -DGPUNUM_FUZZ_SECONDS=5 -DGPUNUM_FUZZ_SEED=40260922) # other cases than gcc's
    endif()
    set(sanitizing -DGPUNUM_BUILD_EXAMPLES=OFF -DGPUNUM_BUILD_TOOLS=OFF
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-O1)
    gpunum_rebuild(address_sanitizer ${sanitizing} -DGPUNUM_SANITIZE=address,undefined -DGPUNUM_FUZZ_SECONDS=15)
    gpunum_rebuild(thread_sanitizer ${sanitizing} -DGPUNUM_SANITIZE=thread -DGPUNUM_FUZZ_SECONDS=15)

    find_program(GPUNUM_VALGRIND valgrind)
    gpunum_required("clang" GPUNUM_CLANG GPUNUM_CLANGXX)
    gpunum_required("valgrind" GPUNUM_VALGRIND)
    mark_as_advanced(GPUNUM_VALGRIND)
    foreach(target ${GPUNUM_VALGRIND_TESTS})
        if(GPUNUM_VALGRIND AND TARGET ${target})
            gpunum_test(check.valgrind_${target} check "${on_cpu}" ${GPUNUM_VALGRIND} --quiet
                --error-exitcode=1 --suppressions=${PROJECT_SOURCE_DIR}/tests/valgrind.supp
                --leak-check=full --errors-for-leak-kinds=definite,indirect
                $<TARGET_FILE:${target}>)
        endif()
    endforeach()
endif()
