"""Images with labels as options: asks a model of images and texts, and measures as for labels."""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
