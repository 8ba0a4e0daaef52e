#version 450
// Elementwise programs, specialised; see program.glsl. The small ones take at most 3 inputs and 1 output.
// Devices without addresses do with the interpreter.
//
//! no-bindings
//! variant map_4 -DGN_STEPS=4 -DGN_INPUTS=3
//! variant map_8 -DGN_STEPS=8 -DGN_INPUTS=3
//! variant map_24 -DGN_STEPS=24 -DGN_INPUTS=8
//! variant map_full_8 -DGN_STEPS=8 -DGN_INPUTS=3 -DGN_FULL
//! variant map_full_24 -DGN_STEPS=24 -DGN_INPUTS=8 -DGN_FULL
//! variant map_wide_8 -DGN_STEPS=8 -DGN_INPUTS=3 -DGN_X64
#extension GL_GOOGLE_include_directive : require
#include "elementwise.glsl"
