#version 450
// Elementwise programs, interpreted; see program.glsl.
//
//! variant map_generic -DGN_GENERIC
//! variant map_wide_generic -DGN_GENERIC -DGN_X64
//! variant map_copy64 -DGN_GENERIC -DGN_RAW64
#extension GL_GOOGLE_include_directive : require
#include "elementwise.glsl"
