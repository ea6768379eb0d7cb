"""What generated texts say: pronouns, refusals, numbers. Each detector carries a version that its metrics name."""
