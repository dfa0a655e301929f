"""A bot for a room in which several people talk: it reads `NAME: TEXT` a line, and answers in lines.

Run it as `python bot.py [HOME]`. Whatever carries the lines (IRC, a chat platform, a socket) stands in
for standard input and output. It has one session, which it takes up again when it is started again.
"""

import asyncio
import sys

import steersman


@steersman.tool
def roll(sides: int = 6) -> int:
    """Roll a die.

    Args:
        sides: how many sides the die has
    """
    import random

    return random.randint(1, sides)


AGENT = steersman.Agent("bot", instructions="You are a bot in a room. Be brief.", tools=[roll])


def tell(text: str) -> None:
    """Say something to the room."""
    print(text, flush=True)


async def follow(session: steersman.SessionHandle) -> None:
    """Tell the room what the agent does, until the session is left."""
    async for event in session.events(after=session.inspect()["seq"]):
        if event.type == "tool_started":
            tell(f"bot: ({event.tool} {event.arguments})")


async def answer(receipt: steersman.Receipt, user: str) -> None:
    """Tell the room the answer to a message, when it is there."""
    outcome = await receipt.done()
    if outcome.status == "failed":
        tell(f"bot: {user}: that went wrong: {outcome.reason}")
    elif outcome.status == "interrupted":
        tell(f"bot: {user}: stopped")
    elif outcome.text:
        tell(f"bot: {user}: {outcome.text}")


async def main(home: str | None = None) -> None:
    """Take up the room's session, or begin it, and pass on what people say until the input ends."""
    async with steersman.open(home, unattended=True) as runtime, asyncio.TaskGroup() as tasks:
        known = [info.id for info in runtime.sessions() if info.agent == AGENT.name]
        if known:
            session = await runtime.resume(known[0], agent=AGENT)
        else:
            session = await runtime.start(AGENT)
        tasks.create_task(follow(session))
        answers: set[asyncio.Task[None]] = set()
        while line := await asyncio.to_thread(sys.stdin.readline):
            user, _, text = line.strip().partition(": ")
            try:
                receipt = await session.say(text, user=user)  # "stop" stops, as in a chat
            except steersman.Rejected as refusal:
                tell(f"bot: {user}: {refusal.reason}. {refusal.hint}")
                continue
            if receipt.ack:
                tell(f"bot: {user}: {receipt.ack}")
            if receipt.taken_as != "interrupt":
                answers.add(tasks.create_task(answer(receipt, user)))
        await asyncio.gather(*answers)
        await session.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
