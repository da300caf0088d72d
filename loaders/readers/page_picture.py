"""Pictures of the pages of a PDF: does a page show a character, or is it white, covered, clipped, or not drawn?

Only the child process of `loaders.readers.pdf` imports this.
"""

from __future__ import annotations

import ctypes
import math
import time
from dataclasses import dataclass
from typing import Any, Final

from pypdfium2 import raw

_PIXELS_HIGH: Final = 12.0
"""Height of the usual character in the picture."""
_LARGEST_SCALE: Final = 8.0
"""Maximum pixels per point, on pages of small print."""
_MOST_PIXELS: Final = 6_000_000
_LEAST_PIXELS: Final = 3
"""Minimum height of a character that can be seen in the picture."""
_MOST_IMAGE_PIXELS: Final = 100_000_000
"""Maximum size of the images of a page that is drawn."""
_DEADLINE_S: Final = 2.0
"""Maximum time to draw a page."""
_CONTRAST: Final = 24
"""Minimum difference between a character and its background in red, green or blue, of 255."""
_CHANNELS: Final = 3
"""Bytes of a pixel: blue, green and red."""
_INNER: Final = 0.12
"""Margin of the box of a character in which the lines of tables and other characters are, as a share of its height."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The colours of a page, three bytes a pixel, by rows from its top."""

    values: bytes
    width: int
    height: int
    stride: int
    left: float
    top: float
    across: float
    """Pixels a point."""
    down: float

    def shows(self, left: float, bottom: float, right: float, top: float) -> bool:
        """Check whether the page shows anything in a box. True for a box that is too small for the picture."""
        margin = _INNER * (top - bottom)
        y0, y1 = int((self.top - top + margin) * self.down), math.ceil((self.top - bottom - margin) * self.down)
        x0, x1 = int((left - self.left) * self.across), math.ceil((right - self.left) * self.across)
        if y1 - y0 < _LEAST_PIXELS:
            return True
        y0, y1, x0, x1 = max(y0, 0), min(y1, self.height), max(x0, 0), min(max(x1, x0 + 1), self.width)
        if x0 >= x1:
            return False
        lows, highs = [255] * _CHANNELS, [0] * _CHANNELS
        middle = (y0 + y1) // 2
        # Most characters have ink in the rows around their middle.
        for row in (*range(middle, y1), *range(middle - 1, y0 - 1, -1)):
            start = row * self.stride
            for channel in range(_CHANNELS):
                piece = self.values[start + _CHANNELS * x0 + channel : start + _CHANNELS * x1 : _CHANNELS]
                lows[channel], highs[channel] = min(lows[channel], min(piece)), max(highs[channel], max(piece))
                if highs[channel] - lows[channel] >= _CONTRAST:
                    return True
        return False


def draw(page: Any, box: tuple[float, float, float, float], usual: float, image_pixels: int) -> Picture | None:
    """Draw a page within `box`, so that characters of the `usual` height can be seen.

    None if the page is too large, or takes too long. `image_pixels` is the size of its images.
    """
    left, bottom, right, top = box
    across, down = right - left, top - bottom
    if not all(map(math.isfinite, (*box, usual))) or across <= 0 or down <= 0 or image_pixels > _MOST_IMAGE_PIXELS:
        return None
    scale = min(_PIXELS_HIGH / usual, _LARGEST_SCALE, math.sqrt(_MOST_PIXELS / (across * down)))
    width, height = int(across * scale), int(down * scale)
    if width < 1 or height < 1 or width * height > 2 * _MOST_PIXELS:
        return None
    bitmap = raw.FPDFBitmap_CreateEx(width, height, raw.FPDFBitmap_BGR, None, 0)
    if not bitmap:
        return None
    try:
        raw.FPDFBitmap_FillRect(bitmap, 0, 0, width, height, 0xFFFFFFFF)
        # Characters have their places on the page before it is turned.
        upright = -raw.FPDFPage_GetRotation(page) % 4
        ends = time.monotonic() + _DEADLINE_S
        pause = raw.IFSDK_PAUSE(version=1)
        pause.NeedToPauseNow = type(pause.NeedToPauseNow)(lambda _: time.monotonic() > ends)
        try:
            done = raw.FPDF_RenderPageBitmap_Start(bitmap, page, 0, 0, width, height, upright, 0, ctypes.byref(pause))
        finally:
            raw.FPDF_RenderPage_Close(page)
        if done != raw.FPDF_RENDER_DONE:
            return None
        stride = raw.FPDFBitmap_GetStride(bitmap)
        values = ctypes.string_at(raw.FPDFBitmap_GetBuffer(bitmap), stride * height)
    finally:
        raw.FPDFBitmap_Destroy(bitmap)
    return Picture(values, width, height, stride, left, top, width / across, height / down)
