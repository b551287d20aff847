//! Flame graphs as SVG and text from a call tree.
