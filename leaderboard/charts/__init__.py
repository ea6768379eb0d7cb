"""Draws the kinds of charts of the board from values with intervals, knowing nothing of pages and benchmarks.

*rows* and *scatter* draw dots with intervals, *curves* and *bumps* lines, and *grids* numbers in coloured cells.
*values* are what they draw.
"""
