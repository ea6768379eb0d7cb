"""Draws charts as SVG from marks with intervals, lines, boxes and texts, in the colours of both schemes.

*drawing* writes shapes and texts, *planes* puts marks between two axes, and names where they avoid each other.
"""
