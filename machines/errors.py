"""The errors of the program, as one tree.

    SteersmanError                      exit 1
    ├── UsageError                      exit 2   a senseless command line
    ├── ConfigError                     exit 2   a wrong file; names file, line, column
    │   └── PlugInError                          an installed plug-in cannot be used
    ├── MachineError                    exit 2   a machine or routing table contradicts itself
    ├── AdmissionRefused                exit 1   a mailbox is full: nothing was taken
    ├── StoreError                      exit 1   the journal cannot be read or written
    │   ├── StoreBusy                            another live process owns the session
    │   ├── StoreDamaged                         the file is not a database, or fails its own check
    │   ├── StoreTooNew                          written by a later version of this program
    │   ├── StoreTooOld                          written before the first release
    │   ├── StoreFailed                          an I/O error: the store accepts nothing until reopened
    │   ├── ConnectionLost                       during a write that may have happened or not
    │   ├── UnknownSession          exit 2       no session has this id or name
    │   └── LeaseLost                            another process took the session over
    ├── ModelError                      exit 1   a model did not answer usefully
    ├── TemplateError                   exit 1   a template of a workflow cannot be filled in
    └── ToolError                       exit 1   a tool cannot do what it was asked

A rejected command is a typed reply and part of the protocol; these are for what a program or a file
got wrong. The message says what happened and where, the hint says the next step.
"""


class SteersmanError(Exception):
    """Base of all errors that a person may see; `hint` is the next step, in one sentence."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(SteersmanError):
    """The command line makes no sense."""

    exit_code = 2


class ConfigError(SteersmanError):
    """A file that people write is wrong: `FILE:LINE:COL: message`, lines and columns from 1."""

    exit_code = 2

    def __init__(
        self, message: str, hint: str = "", *, file: str = "", line: int = 0, column: int = 0
    ) -> None:
        super().__init__(message, hint)
        self.file = file
        self.line = line
        self.column = column

    def __str__(self) -> str:
        """Prefix the place, as compilers do, so that editors can jump to it."""
        place = f"{self.file}:{self.line}:{self.column}: " if self.line else ""
        place = place or (f"{self.file}: " if self.file else "")
        return f"{place}{self.message}"


class PlugInError(ConfigError):
    """A plug-in cannot be used; `fault` is the reason without its name and distribution."""

    def __init__(self, message: str, hint: str = "", *, fault: str = "") -> None:
        super().__init__(message, hint)
        self.fault = fault


class MachineError(SteersmanError):
    """A machine or a routing table contradicts itself."""

    exit_code = 2


class AdmissionRefused(SteersmanError):
    """A mailbox is full: nothing was taken, and the text is still the sender's."""


class StoreError(SteersmanError):
    """The journal cannot be read or written."""


class StoreBusy(StoreError):
    """Another live process owns the session."""


class StoreDamaged(StoreError):
    """The file is not a database, or fails its own check."""


class StoreTooNew(StoreError):
    """The file was written by a later version of this program."""


class StoreTooOld(StoreError):
    """The file was written before the first release, in a format that nothing reads any more."""


class StoreFailed(StoreError):
    """An I/O error: the store accepts nothing more until it is reopened."""


class ConnectionLost(StoreError):
    """The connection to the store was lost during a write: ask whether it happened."""


class UnknownSession(StoreError):
    """No session has this id or name."""

    exit_code = 2


class LeaseLost(StoreError):
    """Another process took the session over; this owner's commits are refused."""


class ModelError(SteersmanError):
    """A model did not answer usefully; `retryable` if the same request may succeed later.

    `is_too_long`: the conversation does not fit into its window.
    """

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        is_too_long: bool = False,
    ) -> None:
        super().__init__(message, hint)
        self.retryable = retryable
        self.is_too_long = is_too_long
        self.retry_after = retry_after  # seconds, as the server asked


class TemplateError(SteersmanError):
    """A template or a condition of a workflow cannot be filled in; `line` is its own, from 1."""

    def __init__(self, message: str, hint: str = "", *, line: int = 1) -> None:
        super().__init__(message, hint)
        self.line = line


class ToolError(SteersmanError):
    """A tool cannot do what it was asked; the message goes to the model."""
