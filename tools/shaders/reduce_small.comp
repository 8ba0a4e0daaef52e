#version 450
// Reductions of programs of at most 8 instructions, 3 inputs and 4 dimensions each way; see program.glsl
// and reduce.glsl. Drivers compile these faster. Devices without addresses use reduce_24.
//
//! no-bindings
//! variant reduce_8 -DGN_STEPS=8 -DGN_INPUTS=3
#extension GL_GOOGLE_include_directive : require
#define GN_AT_ONCE 8
#include "reduce.glsl"
