#version 450
// Eigenvalues and singular values of batches of small matrices: see eigen.glsl.
//
//! no-bindings
//! variant eigen
//! variant eigen64 -DGN_DOUBLE
#extension GL_GOOGLE_include_directive : require
#include "eigen.glsl"
