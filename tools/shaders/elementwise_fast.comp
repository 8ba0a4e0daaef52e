#version 450
// Elementwise programs, specialised; see program.glsl. map_8 takes at most 3 inputs and 1 output.
// Devices without addresses do with the interpreter.
//
//! no-bindings
//! variant map_8 -DGN_STEPS=8 -DGN_INPUTS=3
//! variant map_24 -DGN_STEPS=24 -DGN_INPUTS=8
//! variant map_wide_24 -DGN_STEPS=24 -DGN_INPUTS=8 -DGN_X64
#extension GL_GOOGLE_include_directive : require
#include "elementwise.glsl"
