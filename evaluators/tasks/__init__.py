"""One file per item shape: item to requests, responses to record; found by name."""
