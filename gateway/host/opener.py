"""What sessions are opened with: a profile, its plug-ins, MCP servers, skills and instruction files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from ...actors.agent_profile import AgentProfile
from ...journal.record import SessionRecord
from ...machines import protocol as m
from ...machines.errors import PlugInError
from ...machines.value import Value
from ...ports import attachment
from ...ports.instructions import (
    FEW,
    MOST,
    Instructions,
    has_changed,
    instructions_of,
    read_instructions,
)
from ...ports.models.choice import Choice
from ...ports.models.provider import model_configs, takes_pictures
from ...ports.templates import skills_in, skills_text
from ...ports.tools.mcp_offer import McpServer
from ...ports.tools.sandbox import SandboxPolicy
from ...ports.tools.tool import Tool
from ...workflows.providers import is_small
from ...workflows.registry import EXTENSIONS
from ...workflows.tools import TOOLS
from ...workflows.trust import BESIDE, counts
from ..running import RunPlan
from .profile_factory import ProfileFactory

if TYPE_CHECKING:
    from .host import Host


Notify = Callable[[str, str], None]
"""Publishes a notice in a session; any thread."""


class StartedServers(Protocol):
    """The started MCP servers of one session."""

    def attend(self, session: str) -> None:
        """Report what failed at the start, and from now on what changes, to the session's people."""
        ...

    def close(self) -> None:
        """End the servers of a session that did not come about."""
        ...


class PreparedSession(Value):
    """What a session is opened with; `notices` are for its people once it is open."""

    profile: AgentProfile
    servers: StartedServers | None
    notices: tuple[str, ...]


class SessionOpener:
    """Makes what the sessions of a host, and their subagents, are opened with."""

    def __init__(self, host: Host, environ: Mapping[str, str], sandbox: SandboxPolicy) -> None:
        self._host, self.environ, self.sandbox = host, environ, sandbox
        self._runtime, self._paths, self._config = host.runtime, host.paths, host.config
        self.profiles = ProfileFactory(host, environ)
        host.runtime.child_setup.profile_of = self._child_profile
        host.runtime.child_setup.workflow_of = self.profiles.included

    def new(
        self, folder: Path, plan: RunPlan | None, agent: str, given: Sequence[McpServer]
    ) -> PreparedSession:
        """Prepare a new session in a folder: an agent's, or those of a workflow's run."""
        if plan is not None:
            profile = self.profiles.run(plan)
        else:
            name = agent or self._host.launch.agent or self._config.default_agent
            profile = self.profiles.profile(name)
        is_patient = plan is not None or self._host.launch.is_one_shot
        return self.composed(self._equipped(profile, folder, given, is_patient=is_patient), folder)

    def composed(self, found: PreparedSession, folder: Path) -> PreparedSession:
        """Add what the person's files say to the instructions."""
        profile, files = found.profile, Instructions()
        if _works_here(profile.tools):
            files = read_instructions(folder, self._paths.config, FEW if self._is_small else MOST)
        system = profile.system + skills_text(profile.skills, folder) + files.text
        notices = (*([told] if (told := files.told()) else ()), *found.notices)
        return replace(found, profile=replace(profile, system=system), notices=notices)

    def existing(self, record: SessionRecord, given: Sequence[McpServer]) -> PreparedSession:
        """Prepare a session that is resumed."""
        profile, folder = self.profiles.of_record(record), Path(record.folder)
        is_patient = self._host.launch.is_one_shot or record.run is not None
        found = self._equipped(profile, folder, given, is_patient=is_patient)
        return self.composed(found, folder) if profile.is_refit else found

    def fitted(self, record: SessionRecord, model: str) -> tuple[AgentProfile, Choice | None]:
        """Return the profile of a session with another model. Raises `SteersmanError`."""
        profile, choice = self.profiles.fitted(record, model)
        if profile.is_refit:
            bare = PreparedSession(profile=profile, servers=None, notices=())
            profile = self.composed(bare, Path(record.folder)).profile
        return profile, choice

    def is_outdated(self, record: SessionRecord) -> bool:
        """Whether the instruction files have changed since the session's start here."""
        if record.imported_from or not _works_here(record.tools):
            return False
        return has_changed(instructions_of(record.system), Path(record.folder), self._paths.config)

    @property
    def attachable(self) -> int:
        """How many bytes of files a message may attach."""
        most = attachment.FILES * self._config.tools.attachment_limit
        return min(attachment.FEW, most) if self._is_small else most

    @property
    def _is_small(self) -> bool:
        choice = self.profiles.choice
        return choice is not None and is_small(choice.config.provider)

    def markdown(self, folder: Path) -> list[Path]:
        """Return the folders that have the templates and skills of a session in `folder`."""
        is_read = counts(self._paths, folder, BESIDE)
        return [*([folder / BESIDE] if is_read else []), self._paths.config]

    def takes_pictures(self, agent: str, model: str = "") -> bool:
        """Whether an agent's model is known to take pictures; one of a program's own says so.

        Where none was built, since nothing runs here, `model` is what a person chose in the session.
        """
        own = self.profiles.own_model(agent)
        if own is not None:
            return bool(getattr(own, "takes_pictures", False))
        choice = self.profiles.choice
        if choice is not None:
            return takes_pictures(choice.config)
        known, settings = model_configs(self._config.models), self._config.agents.get(agent)
        named = known.get(model or (settings.model if settings is not None else ""))
        return named is not None and takes_pictures(named)

    def _child_profile(self, agent: str, parent: SessionRecord) -> AgentProfile:
        """Return the profile of a subagent, with servers of its own; the parent has said what fails."""
        profile = self.profiles.child(agent, parent)
        found = self._equipped(profile, Path(parent.folder), is_patient=True)
        for fault in found.notices:
            self._host.complain(fault)
        return found.profile

    def _equipped(
        self,
        profile: AgentProfile,
        folder: Path,
        given: Sequence[McpServer] = (),
        *,
        is_patient: bool,
    ) -> PreparedSession:
        """Import an agent's tools that are plug-ins, and start its servers; say which cannot be used."""
        toolbox = self._runtime.shared.toolbox
        there = (*toolbox.names, m.AGENT_TOOL, *(tool.schema.name for tool in profile.own_tools))
        tools: list[Tool] = []
        faults: dict[str, str] = {}
        for name in profile.tools:
            if name not in there and name in TOOLS:
                from ...ports.tools.function import bound

                try:
                    tools.append(bound(TOOLS.load(name), None, toolbox.resources))
                except PlugInError as error:
                    faults[name] = f"{error.message}; {error.hint}"
        usable = tuple(name for name in profile.tools if name not in faults)
        profile = replace(profile, tools=usable, own_tools=(*profile.own_tools, *tools))
        servers = None
        if self._config.mcp or given:
            factory = EXTENSIONS.load("mcp servers")(
                *(self._runtime, self._config, self.environ, self.sandbox),
                self._host.observers.report,
            )
            profile, servers = factory.equip(profile, folder, given, is_patient=is_patient)
        if _works_here(profile.tools) and "read" in profile.tools and not self._is_small:
            profile = replace(profile, skills=skills_in(self.markdown(folder)))
        return PreparedSession(profile=profile, servers=servers, notices=tuple(faults.values()))


def _works_here(tools: tuple[str, ...]) -> bool:
    """Whether an agent does something in its folder itself."""
    return bool(tools) and m.AGENT_TOOL not in tools
