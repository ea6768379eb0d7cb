"""Draws the kinds of charts of the board from values with intervals, knowing nothing of pages and benchmarks.

*rows* and *scatter* draw dots with intervals, *curves* lines, and *grids* numbers in coloured cells.
"""
