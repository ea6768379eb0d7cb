"""What commands print with ``--format json``: *documents*, whose published schemas lie here too."""
