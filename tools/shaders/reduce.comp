#version 450
// Reductions of programs, interpreted; see program.glsl and reduce.glsl.
//
//! variant reduce_generic -DGN_GENERIC
//! variant reduce_wide_generic -DGN_GENERIC -DGN_X64
#extension GL_GOOGLE_include_directive : require
#include "reduce.glsl"
