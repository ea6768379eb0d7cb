"""Gets answers: from a backend, from files of elsewhere, or from an adapter that is trained first."""
