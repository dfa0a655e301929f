"""A bookkeeper: the program of the story. `python own_program.py HOME [SESSION]`."""

import asyncio
import sys

import steersman


@steersman.tool
def pay(amount: int, ctx: steersman.Context) -> str:
    """Pay an amount."""
    with open(ctx.folder / "ledger.txt", "a", encoding="utf-8") as ledger:
        ledger.write(f"{amount}\n")
    print("the bank is asked", flush=True)
    return sys.stdin.readline().strip()


AGENT = steersman.Agent("bookkeeper", model="main", tools=[pay])


async def main(home: str, session_id: str = "") -> None:
    """Ask two questions and queue a third; or go on with the session, once told to."""
    async with steersman.open(home) as runtime:
        if session_id:
            session = await runtime.resume(session_id, agent=AGENT)
            async for event in session.events():
                if event.type == "recovered":
                    for call in event.unknown:
                        print("unknown", call["tool"], call["arguments"], flush=True)
                    for item in event.items:
                        print(item["state"], item["text"], flush=True)
                    await asyncio.to_thread(sys.stdin.readline)
                    await session.resume_queue()
                if event.type == "turn_ended" and event.item == "m3":
                    return
        session = await runtime.start(AGENT)
        print(session.id, (await session.ask("What do I owe?")).text, flush=True)
        receipts = [await session.say("Pay it."), await session.say("And thank them.", "queue")]
        for receipt in receipts:
            print((await receipt.done()).text, flush=True)


asyncio.run(main(*sys.argv[1:]))
