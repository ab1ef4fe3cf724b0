//! The policy model: layers, trust, resolution, and one decision function per question.
