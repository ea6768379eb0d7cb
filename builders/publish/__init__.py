"""Publishes dataset folders on the Hugging Face Hub; no builder, but the command that follows every builder."""
