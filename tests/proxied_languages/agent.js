// Asks with both SDKs, whole and streamed; the variables of the environment say where.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const messages = [{ role: "user", content: process.argv[2] }];
const chat = new OpenAI().chat.completions;
const whole = await chat.create({ model: "gpt-5-mini", messages });
console.log(whole.choices[0].message.content);
const events = await chat.create({ model: "gpt-5-mini", messages, stream: true });
let text = "";
for await (const event of events) text += event.choices[0]?.delta?.content ?? "";
console.log(text);

const claude = new Anthropic().messages;
const asked = { model: "claude-haiku-4-5", max_tokens: 99, messages };
console.log((await claude.create(asked)).content[0].text);
console.log(await claude.stream(asked).finalText());

// Overlapping calls on connections that are kept open.
const answers = await Promise.all(
  ["a", "b", "c", "d"].map((word) =>
    chat.create({ model: "gpt-5-mini", messages: [{ role: "user", content: `@say ${word}` }] }),
  ),
);
console.log(answers.map((answer) => answer.choices[0].message.content).join(""));
