"""Limits that a child process sets for itself before it handles foreign input: memory, time, files, sockets, its end.

Standard library only: a worker has to start in milliseconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import resource
import select
import signal
import struct
import sys
import threading
from typing import BinaryIO, Final

_STACK_BYTES: Final = 524_288
_WATCHER_STACK_BYTES: Final = 262_144
_PR_SET_PDEATHSIG: Final = 1
_PAGE_BYTES: Final = resource.getpagesize()


def confine(
    *,
    memory_bytes: int,
    seconds: float | None = None,
    file_bytes: int | None = None,
    niceness: int = 0,
    sockets: bool = False,
) -> None:
    """Limit this process irrevocably: no sockets unless `sockets`, no core dump, at most `memory_bytes` of data.

    `seconds` is the time after which the process is killed, `file_bytes` the size of its largest file, `niceness` the
    increment of its own niceness.
    """
    ignore_interrupts()
    if not sockets:
        deny_sockets()
    if seconds is not None:
        signal.setitimer(signal.ITIMER_REAL, seconds)  # SIGALRM without a handler ends the process
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    if niceness:
        os.nice(niceness)


def ignore_interrupts() -> None:
    """Ignore Ctrl-C: it is for the parent, which then ends this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def deny_sockets() -> bool:
    """Forbid this process to create sockets, for good; return whether the system can (Linux seccomp).

    The guard rejects SERVICE before a query gets here. This is the second wall: Oxigraph has no switch to turn off its
    HTTP client, and a query that got past the guard would reach every address that this machine reaches.
    """
    known = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}  # AUDIT_ARCH_*, number of socket(2)
    if sys.platform != "linux" or platform.machine() not in known:
        return False
    architecture, socket_call = known[platform.machine()]
    load, jump_if_equal, leave = 0x20, 0x15, 0x06
    program = b"".join(
        struct.pack("=HBBI", *instruction)
        for instruction in (
            (load, 0, 0, 4),  # seccomp_data.arch
            (jump_if_equal, 0, 3, architecture),
            (load, 0, 0, 0),  # seccomp_data.nr
            (jump_if_equal, 1, 0, socket_call),
            (leave, 0, 0, 0x7FFF0000),  # SECCOMP_RET_ALLOW
            (leave, 0, 0, 0x00050000 | 13),  # SECCOMP_RET_ERRNO, EACCES
        )
    )

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))

    libc = ctypes.CDLL(None, use_errno=True)
    set_no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
    filters = Program(len(program) // 8, program)
    return bool(
        libc.prctl(set_no_new_privileges, 1, 0, 0, 0) == 0
        and libc.prctl(set_seccomp, filter_mode, ctypes.byref(filters), 0, 0) == 0
    )


def use_small_stacks() -> None:
    """Give the threads of libraries small stacks: RocksDB opens files with dozens, and 8 MiB each count as memory.

    Queries are evaluated in the main thread, whose stack does not change.
    """
    libc = ctypes.CDLL(None)
    with contextlib.suppress(AttributeError):  # only the GNU library has a default that can be set
        set_default = libc.pthread_setattr_default_np
        attributes = ctypes.create_string_buffer(256)  # pthread_attr_t has 36 to 64 bytes
        libc.pthread_attr_init(attributes)
        libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(_STACK_BYTES))
        set_default(attributes)
        libc.pthread_attr_destroy(attributes)


def die_with_parent_thread() -> None:
    """Have the system kill this process when the thread that started it ends (Linux; elsewhere: do nothing)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def die_with_pipe(requests: int) -> None:
    """Kill this process as soon as nobody can write to the pipe `requests`, from a thread of its own.

    For a process that outlives the thread that started it. Oxigraph releases the GIL while it evaluates, so this works
    within a query too.
    """

    def watch() -> None:
        poll = select.poll()
        poll.register(requests, 0)  # POLLHUP and POLLERR are always reported
        poll.poll()
        os.kill(os.getpid(), signal.SIGKILL)

    threading.stack_size(_WATCHER_STACK_BYTES)
    threading.Thread(target=watch, daemon=True).start()


def take_pipes() -> tuple[BinaryIO, int]:
    """Take standard input, as a stream, and standard output, as a descriptor, for frames.

    Output that a library prints goes to standard error: it must not get between the frames.
    """
    requests, answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return requests, answers


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data` to a pipe."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def holds_more_than(limit_bytes: int) -> bool:
    """Return whether this process holds more memory than that now (False where the system does not report it)."""
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 <= limit_bytes:
        return False  # it never did; workers ask after each query, and reading the file takes ten times as long
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[1]) * _PAGE_BYTES > limit_bytes
    except OSError:
        return False


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error is how Python reports that there is no memory: also for a thread, a folder or a library."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    return str(error) == "can't start new thread" or (isinstance(error, ImportError) and "map segment" in str(error))
