#version 450
// Reductions of programs, specialised; see program.glsl and reduce.glsl.
//
//! variant reduce_24 -DGN_STEPS=24 -DGN_INPUTS=8
//! variant reduce_wide_24 -DGN_STEPS=24 -DGN_INPUTS=8 -DGN_X64
#extension GL_GOOGLE_include_directive : require
#include "reduce.glsl"
