#version 450
// Decompositions of batches of small matrices: see factor_small.glsl.
//
//! no-bindings
//! variant factor_cholesky_16 -DGN_CHOLESKY -DGN_P=16
//! variant factor_cholesky_32 -DGN_CHOLESKY -DGN_P=32
//! variant factor_cholesky_64 -DGN_CHOLESKY -DGN_P=64
//! variant factor_cholesky_128 -DGN_CHOLESKY -DGN_P=128
//! variant factor_lu_16 -DGN_LU -DGN_P=16
//! variant factor_lu_32 -DGN_LU -DGN_P=32
//! variant factor_lu_64 -DGN_LU -DGN_P=64
//! variant factor_lu_128 -DGN_LU -DGN_P=128
//! variant factor_back_16 -DGN_BACK -DGN_P=16
//! variant factor_back_32 -DGN_BACK -DGN_P=32
//! variant factor_back_64 -DGN_BACK -DGN_P=64
//! variant factor_back_128 -DGN_BACK -DGN_P=128
//! variant factor_qr_16 -DGN_QR -DGN_P=16
//! variant factor_qr_32 -DGN_QR -DGN_P=32
//! variant factor_qr_64 -DGN_QR -DGN_P=64
//! variant factor_qr_128 -DGN_QR -DGN_P=128
//! variant factor64_cholesky_16 -DGN_CHOLESKY -DGN_P=16 -DGN_DOUBLE
//! variant factor64_cholesky_32 -DGN_CHOLESKY -DGN_P=32 -DGN_DOUBLE
//! variant factor64_cholesky_64 -DGN_CHOLESKY -DGN_P=64 -DGN_DOUBLE
//! variant factor64_lu_16 -DGN_LU -DGN_P=16 -DGN_DOUBLE
//! variant factor64_lu_32 -DGN_LU -DGN_P=32 -DGN_DOUBLE
//! variant factor64_lu_64 -DGN_LU -DGN_P=64 -DGN_DOUBLE
//! variant factor64_back_16 -DGN_BACK -DGN_P=16 -DGN_DOUBLE
//! variant factor64_back_32 -DGN_BACK -DGN_P=32 -DGN_DOUBLE
//! variant factor64_back_64 -DGN_BACK -DGN_P=64 -DGN_DOUBLE
//! variant factor64_qr_16 -DGN_QR -DGN_P=16 -DGN_DOUBLE
//! variant factor64_qr_32 -DGN_QR -DGN_P=32 -DGN_DOUBLE
//! variant factor64_qr_64 -DGN_QR -DGN_P=64 -DGN_DOUBLE
//! variant factor_tiny -DGN_TINY -DGN_P=16
//! variant factor64_tiny -DGN_TINY -DGN_P=16 -DGN_DOUBLE
//! variant factor_triangle -DGN_TRIANGLE -DGN_P=16
//! variant factor64_triangle -DGN_TRIANGLE -DGN_P=16 -DGN_DOUBLE
#extension GL_GOOGLE_include_directive : require
#include "factor_small.glsl"
