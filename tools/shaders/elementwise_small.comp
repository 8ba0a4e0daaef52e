#version 450
// Elementwise programs of at most 8 instructions, 3 inputs, 4 dimensions and one output, which is most
// of them; see program.glsl. Drivers compile these faster. Devices without addresses use map_24.
//
//! no-bindings
//! variant map_8 -DGN_STEPS=8 -DGN_INPUTS=3
//! variant map_copy64_8 -DGN_STEPS=8 -DGN_INPUTS=3 -DGN_RAW64
#extension GL_GOOGLE_include_directive : require
#include "elementwise.glsl"
