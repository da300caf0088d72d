"""Errors of disks, as Python and as libraries in Rust raise them."""

from __future__ import annotations

import errno

import pytest

from kg.files import is_unwritable


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (OSError(errno.EDQUOT, "Quota exceeded"), True),
        (OSError(errno.EROFS, "Read-only file system"), True),
        (FileNotFoundError(errno.ENOENT, "No such file"), False),
        (Exception("failed to flush a/config.json: No space left on device (os error 28)"), True),
        (Exception("failed to open a/config.json: No such file or directory (os error 2)"), False),
        (Exception("a defect"), False),
        (OSError("without a number (os error 28)"), False),
    ],
)
def test_errors_of_a_disk_that_cannot_be_written_are_known(error: Exception, expected: bool) -> None:
    assert is_unwritable(error) is expected
