#version 450
// Elementwise programs, specialised; see program.glsl.
//
//! variant map_24 -DGN_STEPS=24 -DGN_INPUTS=8
//! variant map_wide_24 -DGN_STEPS=24 -DGN_INPUTS=8 -DGN_X64
#extension GL_GOOGLE_include_directive : require
#include "elementwise.glsl"
