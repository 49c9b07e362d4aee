import asyncio

import openai

client = openai.AsyncOpenAI()
notes = []


async def ask(question):
    messages = [{"role": "user", "content": question}]
    answer = await client.chat.completions.create(model="gpt-5-mini", messages=messages)
    return answer.choices[0].message.content


async def look_up(subject):
    notes.append(f"{subject}: {await ask(subject)}")


async def main():
    await asyncio.gather(*(look_up(subject) for subject in ("price", "stock", "delivery")))
    print(await ask("Sum up: " + "; ".join(notes)))


asyncio.run(main())
