#version 450
// Reductions of programs, specialised; see program.glsl and reduce.glsl. Devices without addresses do
// with the interpreter.
//
//! no-bindings
//! variant reduce_8 -DGN_STEPS=8 -DGN_INPUTS=3
//! variant reduce_wide_8 -DGN_STEPS=8 -DGN_INPUTS=3 -DGN_X64
#extension GL_GOOGLE_include_directive : require
#include "reduce.glsl"
